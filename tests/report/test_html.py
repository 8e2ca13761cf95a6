"""The HTML of a report: one file that loads nothing and runs nothing, whatever a log holds."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from specrepro.repro.report.html_page import html

HOSTILE = [
    "</details><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><style>*{display:none}</style>",
    "<!-- --><iframe src='https://evil.example'></iframe>",
    "{{ 7 * 7 }} {% raw %} ${x}",
    "\x1b[31mred\x1b[0m \u202ecod.exe\u202c \x00",
    "javascript:alert(1)",
    "' onclick='alert(1)",
    "]]> <svg onload=alert(1)>",
]
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(HTMLParser):
    """Elements with their attributes, open elements, and the text of each element's kind."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def holding(text: str) -> Document:
    """A document that has `text` in every place of every part."""
    line = (text, Mono(text), Strong(text), Link(text, text))
    parts = [
        Paragraph(line),
        Facts([(text, line)]),
        Bullets([line]),
        Table([text, ""], [[line, line]], text),
        Code(text),
        Excerpt(text, 3, [(2, text), (3, text)]),
        Chart(text, text, text, [text, "b"], [(text, [1.0, 2.0]), ("b", [None, 1.0])]),
        Chart(text, text, text, [text], [(text, [1.0])], "bar"),
        Grid(text, text, text, [text], [text], [[(text, "bad")]]),
        MemoryMap(text, 10, [Span(8, 12, text, True)]),
        Pipeline(text, 1, [Turn(0, 0, 0, 1, text, True, True)]),
        BlockTable(text, [Copy(text, [1, 2], [(0, 1), (1, 2)], [(1, 2), (2, None)])]),
        Timeline(text, [Moment(text, text, "bad"), Moment(text, text, "good")]),
        Folded(text, [Section(text, [Paragraph(line)])]),
    ]
    return Document(text, line, "bad", parts, text, text, text, [(text, 1)])


def check(text: str) -> Reader:
    """Nothing in the page runs, is loaded, or is heard of elsewhere."""
    reader = read(text)
    for tag, attributes in reader.elements:
        assert tag not in {"script", "iframe", "img", "link", "object", "embed", "base", "form"}
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        address = attributes.get("href", "https://")
        assert address.startswith(("https://", "#")), address
        assert not {"src", "srcdoc", "action"} & attributes.keys()
    return reader


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_text(text: str) -> None:
    reader = check(html(holding(text)))
    shown = "".join(reader.text)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    plain = {tag for tag, _ in check(html(holding("plain"))).elements}
    assert {tag for tag, _ in reader.elements} <= plain | {"a"}


@given(st.text(max_size=40))
def test_any_text_makes_a_whole_page(text: str) -> None:
    check(html(holding(text)))


def test_the_page_forbids_by_itself_what_it_could_load() -> None:
    reader = check(html(holding("x")))
    policies = [a["content"] for tag, a in reader.elements if "http-equiv" in a]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_headings_go_down_step_by_step() -> None:
    inner = Section("three", [Section("four", [Paragraph(("x",))])])
    text = html(Document("t", ("r",), "bad", [Section("two", [inner])], "w", "r", "v"))
    assert re.findall(r"<h(\d)>", text) == ["1", "2", "3", "4"]


def test_what_scrolls_can_be_reached_by_keyboard_and_pictures_have_names() -> None:
    reader = check(html(holding("x")))
    for tag, attributes in reader.elements:
        if tag == "pre" or attributes.get("class") == "wide":
            assert attributes["tabindex"] == "0"
            assert attributes["aria-label"]
        if tag == "svg" and attributes.get("role") == "img":
            assert attributes["aria-label"]
    assert sum(a.get("role") == "img" for tag, a in reader.elements) == 5


def test_a_chart_has_its_numbers_beside_it() -> None:
    chart = Chart("t", "length", "accepted", ["117", "118"], [("all", [4.0, None])])
    text = html(Document("t", ("r",), "bad", [chart], "w", "r", "v"))
    table = text[text.index("<table>") : text.index("</table>")]
    assert re.sub(r"\s+", "", re.sub(r"<[^>]*>", " ", table)) == "lengthall1174118"
    assert "<script" not in text
    assert "<!--" not in text


def test_a_chart_leaves_nothing_behind_that_looks_at_later_imports() -> None:
    html(holding("x"))
    assert not any(type(finder).__module__ == "pygal" for finder in sys.meta_path)


def test_the_style_of_a_chart_reaches_it() -> None:
    chart = Section("s", [Chart("t", "x", "y", ["1", "2"], [("all", [4.0, 1.0])])])
    text = html(Document("t", ("r",), "bad", [chart], "w", "r", "v"))
    [name] = re.findall(r'<svg[^>]* id="([^"]*)"', text)
    assert re.fullmatch(r"[a-z0-9-]+", name)  # no character that a selector reads otherwise
    assert f"#{name} .plot" in text


def test_accesses_past_the_end_are_drawn_past_the_end() -> None:
    memory = MemoryMap("t", 100, [Span(100, 109, "x", True), Span(0, 9, "y", True)])
    text = html(Document("t", ("r",), "bad", [memory], "w", "r", "v"))
    rects = [(a["class"], float(a["x"]), float(a["width"])) for t, a in read(text).elements
             if t == "rect"]  # fmt: skip
    [(_, start, width), (_, past, _), (_, inside, _)] = rects
    assert start == 0
    assert past == pytest.approx(width, abs=0.2)
    assert inside == 0


def test_an_access_far_away_leaves_the_tensor_to_be_seen() -> None:
    spans = [Span(10**12, 10**12 + 3, "x", True), Span(-500, -480, "y", True)]
    text = html(Document("t", ("r",), "bad", [MemoryMap("t", 100, spans)], "w", "r", "v"))
    rects = [(float(a["x"]), float(a["width"])) for t, a in read(text).elements if t == "rect"]
    [(start, width), (far, _), (before, _)] = rects
    assert width > 500  # of 1000
    assert far > start + width
    assert 0 <= before < start
    assert text.count('class="break"') == 2


def pipeline(*turns: Turn) -> Reader:
    part = Pipeline("t", 2, turns)
    return check(html(Document("t", ("r",), "bad", [part], "w", "r", "v")))


def boxes(reader: Reader) -> list[tuple[float, float, float]]:
    return [
        (float(a["x"]), float(a["y"]), float(a["width"]))
        for tag, a in reader.elements
        if tag == "rect"
    ]


def test_a_step_is_drawn_where_it_was_issued_and_where_it_began() -> None:
    [host, stream] = boxes(pipeline(Turn(1, 0, 2, 5, "1-2")))
    [other, later] = boxes(pipeline(Turn(1, 0, 2, 3, "1-2")))
    assert host == other
    assert stream[1] == later[1] > host[1]
    assert stream[0] - host[0] == pytest.approx(3 * (later[0] - other[0]))


def test_steps_in_one_tick_stand_side_by_side() -> None:
    reader = pipeline(Turn(0, 0, 0, 1, "1-2"), Turn(0, 1, 1, 1, "3-4"))
    [(first, y, width), (second, same, _)] = sorted(boxes(reader)[1::2])
    assert y == same
    assert second >= first + width


def test_a_step_that_never_began_has_no_box_in_its_stream() -> None:
    reader = pipeline(Turn(0, 0, 0, None, "1-2", bad=True))
    assert len(boxes(reader)) == 1
    assert "never began" in "".join(reader.text)


def test_a_copy_is_drawn_as_it_was_meant_and_as_it_went() -> None:
    part = BlockTable("t", [Copy("row", [1, 3], [(0, 1), (1, 3)], [(1, 3), (2, None)])], 4)
    reader = check(html(Document("t", ("r",), "bad", [part], "w", "r", "v")))
    kinds = [a["class"] for tag, a in reader.elements if tag == "g"]
    assert kinds == ["cell", "cell", "beyond"]
    arcs = [a["class"] for tag, a in reader.elements if tag == "path"]
    assert arcs == ["meant", "meant head", "used", "used head"]
    shown = "".join(reader.text)
    assert "column 0 (block 1) → column 1 (block 3)" in shown
    assert "column 1 (block 3) → column 2 (behind the table)" in shown
    assert "4 more copies are in the record" in shown


def test_a_copy_that_was_left_out_is_said() -> None:
    part = BlockTable("t", [Copy("row", [1, 3], [(0, 1), (1, 3)], [(1, 3), (1, 3)])])
    reader = check(html(Document("t", ("r",), "bad", [part], "w", "r", "v")))
    assert [a["class"] for tag, a in reader.elements if tag == "path"] == ["meant", "meant head"]
    assert "copied: nothing: both columns are 1" in "".join(reader.text)


def test_a_tensor_without_elements_is_drawn() -> None:
    memory = MemoryMap("t", 0, [])
    text = html(Document("t", ("r",), "bad", [memory], "w", "r", "v"))
    assert "<code>t</code>, 0 elements" in text


def test_a_long_log_is_bounded() -> None:
    log = "\n".join(f"line {number}" for number in range(300_000)) + "\n" + "z" * 10_000_000
    text = html(Document("t", ("r",), "bad", [Code(log)], "w", "r", "v"))
    assert len(text) < 5_000_000
    assert "lines left out" in text
    assert "characters cut" in text


def test_it_is_written_of_a_stored_run(command: Any, runs: Path, tmp_path: Path) -> None:
    done = command("report", "--format", "html", "--runs", runs, "-o", tmp_path / "r.html")
    assert done.returncode == 0
    shown = "".join(check((tmp_path / "r.html").read_text(encoding="utf-8")).text)
    assert "INCONCLUSIVE" in shown
    assert "kernels/kv_write/reference.py:" in shown
