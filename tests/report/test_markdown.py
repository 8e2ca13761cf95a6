"""What a log holds neither breaks the Markdown of a report, nor calls anybody, nor runs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from specrepro.repro.escape import printable
from specrepro.repro.report.document import (
    BlockTable,
    Bullets,
    Chart,
    Code,
    Copy,
    Document,
    Excerpt,
    Facts,
    Folded,
    Grid,
    Link,
    MemoryMap,
    Moment,
    Mono,
    Paragraph,
    Pipeline,
    Section,
    Span,
    Strong,
    Table,
    Timeline,
    Turn,
)
from specrepro.repro.report.gfm import BREAK, prose
from specrepro.repro.report.markdown import LIMIT, markdown
from specrepro.repro.report.mermaid import flow, mermaid

HOSTILE = [
    "</details><script>alert(1)</script>",
    "```\n</details>\n```mermaid\ngraph TD; A-->B",
    "@team and @vllm-project/maintainers, ping",
    "closes #123, fixes vllm-project/vllm#45, GH-7",
    "[click](javascript:alert(1)) ![x](https://evil.example/x.png)",
    "<img src=x onerror=alert(1)> <!-- specrepro case=a run=b -->",
    "\x1b[31mred\x1b[0m \x07 \x9b2J",
    "right to left: \u202ecod.exe\u202c \u2066x\u2069",
    "| a | b |\n| --- | --- |\n| 1 | 2 |",
    "# heading\n- list\n1. one\n> quote\n---\n===",
    "www.evil.example https://evil.example/login mailto:a@b.example",
    "`code` ``two`` \\` $x^2$ ~~gone~~ ==mark== &lt;b&gt; &#64;team",
    '%%{init: {"theme":"dark"}}%% click A href "javascript:alert(1)"',
    "x" * 5_000,
]
OWN_HTML = re.compile(r"</?(?:details|summary|sub)>")


def holding(text: str) -> Document:
    """A document that has `text` in every place of every part."""
    line = (text, " ", Mono(text), " ", Strong(text), " ", Link(text, text))
    return Document(
        title=text,
        result=line,
        tone="bad",
        parts=[
            Paragraph(line),
            Facts([(text, line)]),
            Bullets([line]),
            Table([text, "b"], [[line, (text,)]], text),
            Code(text, "sh"),
            Excerpt(text, 3, [(2, "a"), (3, text)]),
            Chart(text, text, text, [text, "b"], [(text, [1.0, 2.0])]),
            MemoryMap(text, 10, [Span(1, 2, text, True)]),
            Pipeline(text, 1, [Turn(0, 0, 0, 1, text, True, True)]),
            BlockTable(text, [Copy(text, [1, 2], [(0, 1), (1, 2)], [(1, 2), (2, None)])]),
            Grid(text, text, text, [text], [text], [[(text, "bad")]]),
            Timeline(text, [Moment(text, text, "bad"), Moment(text, text, "good")]),
            Folded(text, [Paragraph(line)]),
            Section(text, [Paragraph(line)]),
        ],
        whole=f"specrepro runs show {text}",
        run=text,
        version=text,
        removed=[(text, 1)],
    )


def tokens(text: str) -> list[Token]:
    """Every token, blocks and what is in lines."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    found: list[Token] = []
    for token in parser.parse(text):
        found.append(token)
        found.extend(token.children or [])
    return found


def code(token: Token) -> bool:
    return token.type in ("fence", "code_inline", "code_block")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_does_nothing(text: str) -> None:
    written = markdown(holding(text))
    assert len(written) <= LIMIT
    assert "\x1b" not in written
    assert "\u202e" not in written
    found = tokens(written)
    for token in found:
        if token.type in ("html_block", "html_inline"):
            assert "<" not in OWN_HTML.sub("", token.content), token.content
        if token.type == "text":
            assert not re.search(r"@\w|#\d|\bwww\.\w|://\w|\bGH-\d", token.content), token.content
        if token.type == "link_open":
            assert str(token.attrs["href"]).startswith("https://")
        assert token.type not in ("image", "s_open", "code_block")
    # one heading (ours), one rule of a table each: nothing of the text became structure
    assert [t.tag for t in found if t.type == "heading_open"] == ["h3"]
    assert not any(t.type in ("hr", "blockquote_open", "ordered_list_open") for t in found)
    drawn = [t for t in found if t.type == "fence" and t.info == "mermaid"]
    # a text that is too long leaves no room for it
    assert len(drawn) == 2 * (text != "x" * 5_000)
    raw = "".join(token.content for token in found if token.type == "html_block")
    assert raw.count("<details>") == raw.count("</details>") <= 1


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_prose_is_read_as_it_was_written(text: str) -> None:
    paragraph = tokens(f"a {prose(text)} z")
    said = "".join(t.content for t in paragraph if t.type == "text")
    assert said.replace(BREAK, "") == f"a {printable(text)} z".replace(BREAK, "")
    assert all(t.type in ("paragraph_open", "inline", "text", "paragraph_close") for t in paragraph)


@given(st.text(alphabet="`| ab\\\n", min_size=1, max_size=30))
def test_code_in_a_cell_is_read_as_it_was_written(text: str) -> None:
    one = Document("t", ("r",), "bad", [Table(["h"], [[(Mono(text),)]])], "w", "r", "v")
    cells = [t for t in tokens(markdown(one)) if t.type == "code_inline"]
    assert cells[0].content.strip() == printable(text).strip()


def test_a_line_number_is_no_picture() -> None:
    assert prose("engine/core.py:100: error :tada:") == (
        f"engine/core.py:{BREAK}100: error :{BREAK}tada:"
    )
    assert prose("10:46:43 c10::cuda::Stream a.py:12: error") == (
        "10:46:43 c10::cuda::Stream a.py:12: error"
    )


def test_a_long_log_keeps_its_beginning_and_its_end_and_says_what_is_gone() -> None:
    log = "\n".join(f"line {number} of the log, as long as lines are" for number in range(20_000))
    parts = [Paragraph(("first",)), Folded("log", [Code(log)]), Paragraph(("last",))]
    document = Document("t", ("r",), "bad", parts, "specrepro runs show X --json", "X", "1")
    written = markdown(document)
    assert LIMIT - 2_000 < len(written) <= LIMIT
    assert "line 0 of" in written
    assert "line 19999 of" in written
    [gone] = re.findall(r"… ([\d,]+) lines cut …", written)
    kept = len(re.findall(r"^line \d+ of", written, re.MULTILINE))
    assert kept + int(gone.replace(",", "")) == 20_000
    assert "the whole: `specrepro runs show X --json`" in written
    assert written.index("first") < written.index("last")


def test_the_longest_part_is_cut_first() -> None:
    long, short = "\n".join(["long"] * 30_000), "\n".join(["short"] * 100)
    parts = [Code(short), Code(long)]
    written = markdown(Document("t", ("r",), "bad", parts, "w", "r", "v"))
    assert len(re.findall(r"^short$", written, re.MULTILINE)) == 100
    assert len(written) <= LIMIT


def test_ten_megabytes_in_one_line_fit() -> None:
    written = markdown(holding("y" * 10_000_000))
    assert len(written) <= LIMIT


@given(st.integers(400, 3_000), st.lists(st.text(max_size=80), max_size=60))
def test_no_limit_is_exceeded(limit: int, lines: list[str]) -> None:
    parts = [Code("\n".join(lines)), Bullets([(one,) for one in lines])]
    assert len(markdown(Document("t", ("r",), "bad", parts, "w", "r", "v"), limit)) <= limit


def test_a_chart_is_drawn_and_its_numbers_are_there() -> None:
    chart = Chart("t", "length", "accepted", ["117", "118"], [("accepted", [4.0, 3.0])])
    colors, drawn = mermaid(chart).split("\n", 1)
    assert re.fullmatch(r'%%\{init: .*"plotColorPalette": "#3b7dd8".*\}%%', colors)
    assert drawn == (
        'xychart-beta\n    title "t"\n    x-axis "length" ["117", "118"]\n'
        '    y-axis "accepted" 0 --> 4\n    line [4, 3]'
    )
    written = markdown(Document("t", ("r",), "bad", [chart], "w", "r", "v"))
    assert "| 117 | 4 |" in written
    assert "| 118 | 3 |" in written


def test_a_timeline_is_drawn_in_words_that_mermaid_cannot_take_for_its_own() -> None:
    moments = [Moment('0.1 "] --> x', "bad", "bad"), Moment("0.2", "good", "good")]
    drawn = flow(Timeline("t", moments))
    assert '    n0["0.1    --  x: bad"]:::bad\n    n1["0.2: good"]:::good\n    n0 --> n1\n' in drawn
    assert flow(Timeline("t", moments[:1])) == flow(Timeline("t", moments * 30)) == ""


def test_what_is_known_behind_the_end_of_a_series_is_drawn_and_not_told_as_a_number() -> None:
    series = [("short", [1.0, None, None]), ("long", [1.0, 2.0, 3.0])]
    written = markdown(
        Document(
            "t",
            ("r",),
            "bad",
            [Chart("t", "x", "y", ["0", "1", "2"], series, rest=0.0)],
            "w",
            "r",
            "v",
        )
    )
    assert "    line [1, 0, 0]\n    line [1, 2, 3]\n" in written
    assert "<sub>short: blue · long: orange</sub>" in written
    assert "| 1 |  | 2 |" in written


def test_a_series_that_cannot_be_drawn_is_named() -> None:
    series = [("cut", [1.0, None, 1.0]), ("whole", [1.0, 2.0, 3.0])]
    chart = Chart("t", "x", "y", ["0", "1", "2"], series, rest=0.0)
    written = markdown(Document("t", ("r",), "bad", [chart], "w", "r", "v"))
    assert "cut: not drawn, only in the table · whole: blue" in written


def test_a_chart_with_gaps_is_a_table_only() -> None:
    chart = Chart("t", "x", "y", ["1", "2"], [("a", [1.0, None])])
    assert mermaid(chart) == ""


@pytest.mark.parametrize("url", ["javascript:alert(1)", "http://a.example", "https://a.example/ b"])
def test_only_plain_https_addresses_are_links(url: str) -> None:
    document = Document("t", (Link("name", url),), "bad", [], "w", "r", "v")
    assert "name" in markdown(document)
    assert not any(t.type == "link_open" for t in tokens(markdown(document)))
