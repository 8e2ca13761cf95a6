"""A document as GitHub-flavoured Markdown: what a comment or an issue may hold, and no more.

GitHub acts on text: it notifies `@somebody`, links `#123`, runs HTML and draws Mermaid. Foreign
text stands in code, where it does none of that; where it must be prose, every character that could
act is escaped, and mentions and references are broken by a character of no width. Rules: GitHub
Flavored Markdown 0.29, sections 2.4 (escapes), 4.5 (fences), 4.10 (tables), 6.3 (code spans).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from ..escape import printable
from .document import (
    Block,
    Bullets,
    Chart,
    Code,
    Document,
    Excerpt,
    Facts,
    Folded,
    Grid,
    Line,
    Link,
    MemoryMap,
    Mono,
    Paragraph,
    Piece,
    Section,
    Strong,
    Table,
    Timeline,
    plain,
)
from .mermaid import flow, mermaid
from .redact import summary

LIMIT = 60_000  # characters; GitHub takes 65,536 of a comment
SHORTEST = 300  # characters that a part keeps when it is cut
DETAILS_END = "</details>\n\n"
LONGEST_PROSE = 4_000  # characters of one piece of a line
LONGEST_CELL = 500  # characters of a cell of a table
LONGEST_LINE = 2_000  # characters of one line of code
_ACTS = re.compile(r"([\\`*_\[\]<>|~&$])")
# a heading, a list, a quotation or a rule would begin so
_BEGINS = re.compile(r"^(\s*(?:\d{1,9}(?=[.)])|(?=[#+=:-])))([.)#+=:-])")
# where a mention, a reference, a link or a picture (`:100:`, also in `a.py:100: error`) would begin
_CALLS = re.compile(
    r"((?:@|#|://|www\.|GH-)(?=\w)|(?<!:):(?=(?:100|1234|[+-]1|[a-z][\w+-]{0,40}):(?!:)))"
)
BREAK = "\u200b"
SAFE_URL = re.compile(r"https://[A-Za-z0-9./_~%?=&#+:-]{1,500}")


def markdown(document: Document, limit: int = LIMIT) -> str:
    """The document in at most `limit` characters; the longest parts are cut first, and say so."""
    leaves: list[_Leaf] = []
    pieces = list(_document(document, leaves))
    text = _joined(pieces)
    while len(text) > limit:
        longest = max((leaf for leaf in leaves if leaf.can_shrink), key=_Leaf.size, default=None)
        if longest is None:
            return _whole_parts(pieces, limit, document)
        longest.shrink(len(text) - limit)
        text = _joined(pieces)
    return text


def _whole_parts(pieces: list[_Part], limit: int, document: Document) -> str:
    """As many parts as fit, each whole, and nothing left open: where no part can be cut further."""
    end = f"… cut; the whole: {_mono(document.whole[:LONGEST_CELL])}\n"
    kept, opened = "", 0
    for piece in pieces:
        text = piece if isinstance(piece, str) else piece.shown
        after = opened + text.startswith("<details>") - (text == DETAILS_END)
        if len(kept) + len(text) + len(DETAILS_END) * max(after, 0) + len(end) > limit:
            break
        kept, opened = kept + text, after
    return (kept + DETAILS_END * opened + end)[:limit]


@dataclass(slots=True)
class _Leaf:
    """A part that can be cut: its lines, and how they are written. keep: characters it may take."""

    lines: list[str]
    write: Callable[[list[str], int, int], str]
    keep: int | None = None
    shown: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.shown = self.write(self.lines, 0, 0)

    def size(self) -> int:
        return len(self.shown)

    @property
    def can_shrink(self) -> bool:
        return len(self.lines) > 1 and (self.keep is None or self.keep > SHORTEST)

    def shrink(self, excess: int) -> None:
        """Take `excess` characters off, and a little for the words that say so."""
        self.keep = max(SHORTEST, self.size() - excess - 200)
        left, head, tail = self.keep, 0, 0
        # the beginning names what it is, the end of a log is what matters: both, in turns
        while head + tail < len(self.lines):
            at = len(self.lines) - 1 - tail if (head + tail) % 2 else head
            left -= len(self.lines[at]) + 1
            if left < 0:
                break
            head, tail = (head, tail + 1) if (head + tail) % 2 else (head + 1, tail)
        gone = self.lines[head : len(self.lines) - tail]
        kept = self.lines[:head] + self.lines[len(self.lines) - tail :]
        self.shown = self.write([*kept[:head], *kept[head:]], head, len(gone))


_Part = str | _Leaf


def _joined(parts: list[_Part]) -> str:
    return "".join(part if isinstance(part, str) else part.shown for part in parts)


def _document(document: Document, leaves: list[_Leaf]) -> Iterator[_Part]:
    yield f"### {prose(document.title)}\n\n"
    yield f"{line(document.result)}\n\n"
    for part in document.parts:
        yield from _block(part, document, leaves)
    removed = summary(dict(document.removed))
    yield (
        f"<sub>specrepro {prose(document.version)} · run {_mono(document.run)} · the whole: "
        f"{_mono(document.whole)} · removed before sending: {prose(removed)}</sub>\n"
    )


def _block(part: Block, document: Document, leaves: list[_Leaf]) -> Iterator[_Part]:
    match part:
        case Paragraph():
            yield f"{line(part.line)}\n\n"
        case Facts():
            facts = [f"| {prose(label)} | {_cell(body)} |" for label, body in part.rows]
            yield from _leaf(["| | |", "| --- | --- |"], facts, "", document, leaves)
        case Bullets():
            yield from _leaf([], [f"- {line(one)}" for one in part.lines], "", document, leaves)
        case Table():
            names = " | ".join(prose(name) or " " for name in part.head)
            rule = " | ".join("---" for _ in part.head)
            rows = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in part.rows]
            legend = f"\n<sub>{prose(part.legend)}</sub>\n" if part.legend else ""
            yield from _leaf([f"| {names} |", f"| {rule} |"], rows, legend, document, leaves)
        case Code():
            yield from _code(part.text, part.language, document, leaves)
        case Excerpt():
            yield f"{_mono(f'{part.file}:{part.line}')}\n\n"
            shown = [
                f"{'▶' if number == part.line else ' '} {number:4} │ {text}"
                for number, text in part.lines
            ]
            yield from _code("\n".join(shown), "text", document, leaves)
        case Chart():
            yield from _chart(part, document, leaves)
        case Grid():
            rows = [
                f"| {prose(label)} | {' | '.join(prose(text) for text, _ in cells)} |"
                for label, cells in zip(part.y, part.cells, strict=True)
            ]
            yield f"{line((part.title,))}\n\n"
            names = " | ".join(prose(label) for label in part.x)
            head = [
                f"| {prose(part.y_label)} ↓ {prose(part.x_label)} → | {names} |",
                "| --- |" + " --- |" * len(part.x),
            ]
            yield from _leaf(head, rows, "", document, leaves)
        case Timeline():
            yield from _timeline(part, document, leaves)
        case MemoryMap():
            rows = [
                f"| {span.first:,} … {span.last:,} | {_cell((span.label,))} |"
                f" {'**wrong**' if span.bad else ''} |"
                for span in part.spans
            ]
            yield f"{_mono(part.tensor)}, {part.size:,} elements\n\n"
            head = ["| elements | what | |", "| --- | --- | --- |"]
            yield from _leaf(head, rows, "", document, leaves)
        case Folded():
            yield f"<details><summary>{_in_html(part.title)}</summary>\n\n"
            yield from chain.from_iterable(_block(one, document, leaves) for one in part.parts)
            yield DETAILS_END
        case Section():
            yield f"**{prose(part.title)}**\n\n"
            yield from chain.from_iterable(_block(one, document, leaves) for one in part.parts)


def _leaf(
    head: list[str], rows: list[str], foot: str, document: Document, leaves: list[_Leaf]
) -> Iterator[_Part]:
    if not rows:
        return

    def write(kept: list[str], at: int, gone: int) -> str:
        notice = f"\n\n{_notice(gone, 'rows', document)}" if gone else ""
        return "\n".join([*head, *kept]) + f"\n{foot}{notice}\n"

    leaf = _Leaf(rows, write)
    leaves.append(leaf)
    yield leaf


def _code(text: str, language: str, document: Document, leaves: list[_Leaf]) -> Iterator[_Part]:
    lines = code_lines(text)
    fence = fence_of(lines)

    def write(kept: list[str], at: int, gone: int) -> str:
        cut = [f"… {gone:,} lines cut …"] if gone else []
        body = "\n".join([*kept[:at], *cut, *kept[at:]])
        notice = f"{_notice(gone, 'lines', document)}\n\n" if gone else ""
        return f"{fence}{language}\n{body}\n{fence}\n\n{notice}"

    leaf = _Leaf(lines, write)
    leaves.append(leaf)
    yield leaf


def _notice(gone: int, what: str, document: Document) -> str:
    return f"<sub>{gone:,} {what} cut; the whole: {_mono(document.whole)}</sub>"


def code_lines(text: str) -> list[str]:
    """The lines of a text as they may stand in a fence."""
    return [_shown(one) for one in text.rstrip("\n").split("\n")]


def fence_of(lines: list[str]) -> str:
    """A fence that no line of a text ends (GFM 4.5)."""
    longest = max((len(run) for one in lines for run in re.findall("`+", one)), default=0)
    return "`" * max(3, longest + 1)


def _shown(text: str) -> str:
    """One line of code: printable but for tabs, and not longer than a reader can use."""
    safe = printable(text.expandtabs(8))
    if len(safe) > LONGEST_LINE:
        safe = f"{safe[:LONGEST_LINE]}… {len(safe) - LONGEST_LINE:,} characters cut"
    return safe


def _chart(chart: Chart, document: Document, leaves: list[_Leaf]) -> Iterator[_Part]:
    drawn = mermaid(chart)
    if drawn:
        yield f"```mermaid\n{drawn}\n```\n\n"
    rows = [
        f"| {_cell((label,))} | "
        + " | ".join(_number(values[at]) for _, values in chart.series)
        + " |"
        for at, label in enumerate(chart.x)
    ]
    names = " | ".join(prose(name) for name, _ in chart.series)
    head = [f"| {prose(chart.x_label)} | {names} |", "| --- |" + " --- |" * len(chart.series)]
    yield from _leaf(head, rows, "", document, leaves)


def _timeline(timeline: Timeline, document: Document, leaves: list[_Leaf]) -> Iterator[_Part]:
    yield f"{line((timeline.title,))}\n\n"
    drawn = flow(timeline)
    if drawn:
        yield f"```mermaid\n{drawn}\n```\n\n"
    rows = [f"| {_cell((m.label,))} | {_cell((m.text,))} |" for m in timeline.moments]
    yield from _leaf(["| | |", "| --- | --- |"], rows, "", document, leaves)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def line(pieces: Line) -> str:
    """A line: prose, code and links. At its beginning nothing opens a list or a heading."""
    return _BEGINS.sub(r"\1\\\2", "".join(_piece(piece) for piece in pieces))


def _piece(piece: Piece) -> str:
    match piece:
        case str():
            return prose(piece)
        case Mono():
            return _mono(piece.text)
        case Strong():
            return f"**{prose(piece.text)}**" if piece.text.strip() else ""
        case Link():
            if SAFE_URL.fullmatch(piece.url):
                return f"[{prose(piece.text)}](<{piece.url}>)"
            return prose(piece.text)


def prose(text: str) -> str:
    """Foreign text that is read as it was written and does nothing."""
    return _ACTS.sub(r"\\\1", _CALLS.sub(rf"\1{BREAK}", _short(text)))


def _short(text: str) -> str:
    """Printable, and not endless."""
    if len(text) > LONGEST_PROSE:
        text = f"{text[:LONGEST_PROSE]}… {len(text) - LONGEST_PROSE:,} characters cut"
    return printable(text)


def _in_html(text: str) -> str:
    """Foreign text inside a block of HTML, where Markdown's escapes are not read (GFM 4.6)."""
    return html.escape(_CALLS.sub(rf"\1{BREAK}", _short(text)))


def _mono(text: str) -> str:
    """A code span around any text (GFM 6.3): a fence longer than any in it."""
    safe = _short(text) or " "
    longest = max((len(run) for run in re.findall("`+", safe)), default=0)
    fence = "`" * (longest + 1)
    space = " " if safe.startswith("`") or safe.endswith("`") else ""
    return f"{fence}{space}{safe}{space}{fence}"


def _cell(pieces: Line) -> str:
    """A line in a cell (GFM 4.10): no pipe, no line break, not endless."""
    cut = pieces
    if len(plain(pieces)) > LONGEST_CELL:
        cut = (f"{plain(pieces)[:LONGEST_CELL]}…",)
    # prose has escaped its pipes; in code a pipe needs it too, for the table is cut up first
    return "".join(
        _mono(piece.text).replace("|", "\\|") if isinstance(piece, Mono) else _piece(piece)
        for piece in cut
    )
