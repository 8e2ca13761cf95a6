"""A document as GitHub-flavoured Markdown: what a comment or an issue may hold, and no more.

Foreign text gets into it by `gfm.py` alone, which lets none of it act. Where it would be too long,
the longest parts are cut first, and each says how much is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from .document import (
    Block,
    BlockTable,
    Bullets,
    Chart,
    Code,
    Document,
    Excerpt,
    Facts,
    Folded,
    Grid,
    MemoryMap,
    Paragraph,
    Pipeline,
    Section,
    Table,
    Timeline,
    Turn,
    went,
)
from .gfm import LONGEST_CELL, cell, code_lines, fence_of, in_html, line, mono, prose
from .mermaid import flow, legend, mermaid
from .redact import summary

LIMIT = 60_000  # characters; GitHub takes 65,536 of a comment
SHORTEST = 300  # characters that a part keeps when it is cut
DETAILS_END = "</details>\n\n"


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
    end = f"… cut; the whole: {mono(document.whole[:LONGEST_CELL])}\n"
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
        f"<sub>specrepro {prose(document.version)} · run {mono(document.run)} · the whole: "
        f"{mono(document.whole)} · removed before sending: {prose(removed)}</sub>\n"
    )


def _block(part: Block, document: Document, leaves: list[_Leaf]) -> Iterator[_Part]:
    match part:
        case Paragraph():
            yield f"{line(part.line)}\n\n"
        case Facts():
            facts = [f"| {prose(label)} | {cell(body)} |" for label, body in part.rows]
            yield from _leaf(["| | |", "| --- | --- |"], facts, "", document, leaves)
        case Bullets():
            yield from _leaf([], [f"- {line(one)}" for one in part.lines], "", document, leaves)
        case Table():
            names = " | ".join(prose(name) or " " for name in part.head)
            rule = " | ".join("---" for _ in part.head)
            rows = [f"| {' | '.join(cell(one) for one in row)} |" for row in part.rows]
            legend = f"\n<sub>{prose(part.legend)}</sub>\n" if part.legend else ""
            yield from _leaf([f"| {names} |", f"| {rule} |"], rows, legend, document, leaves)
        case Code():
            yield from _code(part.text, part.language, document, leaves)
        case Excerpt():
            yield f"{mono(f'{part.file}:{part.line}')}\n\n"
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
                f"| {span.first:,} … {span.last:,} | {cell((span.label,))} |"
                f" {'**wrong**' if span.bad else ''} |"
                for span in part.spans
            ]
            yield f"{mono(part.tensor)}, {part.size:,} elements\n\n"
            head = ["| elements | what | |", "| --- | --- | --- |"]
            yield from _leaf(head, rows, _more(part.left_out, "accesses"), document, leaves)
        case Pipeline():
            yield from _pipeline(part, document, leaves)
        case BlockTable():
            rows = [
                f"| {prose(copy.whose)} | {mono(' '.join(map(str, copy.blocks)))} |"
                f" {went(copy, copy.meant)} | **{went(copy, copy.used)}** |"
                for copy in part.copies
            ]
            yield f"{line((part.title,))}\n\n"
            head = ["| | row of the table | meant | used |", "| --- | --- | --- | --- |"]
            yield from _leaf(head, rows, _more(part.left_out, "copies"), document, leaves)
        case Folded():
            yield f"<details><summary>{in_html(part.title)}</summary>\n\n"
            yield from chain.from_iterable(_block(one, document, leaves) for one in part.parts)
            yield DETAILS_END
        case Section():
            yield f"**{prose(part.title)}**\n\n"
            yield from chain.from_iterable(_block(one, document, leaves) for one in part.parts)


def _pipeline(part: Pipeline, document: Document, leaves: list[_Leaf]) -> Iterator[_Part]:
    """A table of stage by step: launches, and the ticks of issue and start."""
    steps = sorted({turn.step for turn in part.turns})
    cells = {(turn.stage, turn.step): turn for turn in part.turns}
    rows = []
    for stage in range(part.stages):
        said = (_turn(cells.get((stage, step))) for step in steps)
        rows.append(f"| {stage} | {' | '.join(said)} |")
    yield f"{line((part.title,))}\n\n"
    names = " | ".join(map(str, steps))
    head = [f"| stage ↓ step → | {names} |", "| --- |" + " --- |" * len(steps)]
    legend = "launches, tick of issue → tick of start · ✗ wrong · ⚠ copied a state astray"
    foot = f"\n<sub>{legend}</sub>\n{_more(part.left_out, 'steps on stages')}"
    yield from _leaf(head, rows, foot, document, leaves)


def _turn(turn: Turn | None) -> str:
    if turn is None:
        return ""
    started = "never" if turn.started is None else turn.started
    return f"{prose(turn.text)}, {turn.issued} → {started}" + " ✗" * turn.bad + " ⚠" * turn.strayed


def _more(left_out: int, what: str) -> str:
    return f"\n<sub>{left_out:,} more {what} are in the record</sub>\n" if left_out else ""


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
    return f"<sub>{gone:,} {what} cut; the whole: {mono(document.whole)}</sub>"


def _chart(chart: Chart, document: Document, leaves: list[_Leaf]) -> Iterator[_Part]:
    drawn = mermaid(chart)
    if drawn:
        yield f"```mermaid\n{drawn}\n```\n\n<sub>{prose(legend(chart))}</sub>\n\n"
    rows = [
        f"| {cell((label,))} | "
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
    rows = [f"| {cell((m.label,))} | {cell((m.text,))} |" for m in timeline.moments]
    yield from _leaf(["| | |", "| --- | --- |"], rows, "", document, leaves)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
