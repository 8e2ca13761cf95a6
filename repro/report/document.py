"""What a report says, apart from how it is written: parts that every format can show.

A document is made of a stored record alone (`run_document.py`, `check_document.py`), and each
format is one writer of these parts (`markdown.py`, `html_page.py`). Text in it is as it was
recorded: what of it could act in a format, that format's writer makes harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Mono:
    """A piece of a line that is code: a name, a command, an address."""

    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    """A piece of a line that a reader must not miss."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A piece of a line that leads to an address. Only https addresses are made into links."""

    text: str
    url: str


Piece = str | Mono | Strong | Link
Line = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or more."""

    line: Line


@dataclass(frozen=True, slots=True)
class Facts:
    """Rows of a label and what there is to say."""

    rows: Sequence[tuple[str, Line]]


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Table:
    """head: a cell a column. rows: as many cells each. legend: what the marks mean."""

    head: Sequence[str]
    rows: Sequence[Sequence[Line]]
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Text that is shown as it is: a command, a log. language: `sh`, `text`, `cuda`…"""

    text: str
    language: str = "text"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a source, (number, text), of which `line` is the one in question."""

    file: str
    line: int
    lines: Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Chart:
    """Numbers over an axis. The numbers are shown as a table as well.

    x: labels in order. series: name → a number a label, None where there is none. kind: `line` or
    `bar`.
    """

    title: str
    x_label: str
    y_label: str
    x: Sequence[str]
    series: Sequence[tuple[str, Sequence[float | None]]]
    kind: str = "line"


@dataclass(frozen=True, slots=True)
class Grid:
    """Outcomes over two parameters. cells: a row for each of `y`, of (text, tone) for each of `x`;
    the tone is `bad`, `good`, `unknown` or `plain`."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[str]
    y: Sequence[str]
    cells: Sequence[Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Moment:
    """One of a timeline. text: what happened. tone: as of `Document`."""

    label: str
    text: str
    tone: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened, or came out, in order: releases with their verdicts, incidents of a GPU."""

    title: str
    moments: Sequence[Moment]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a tensor, elements first … last, and what it is."""

    first: int
    last: int
    label: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """A tensor as a band: its elements, its units with their owners, and the wrong accesses.

    size: elements of the tensor. spans may lie past the end.
    """

    tensor: str
    size: int
    unit: int | None
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Folded:
    """Parts that a reader opens."""

    title: str
    parts: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading."""

    title: str
    parts: Sequence[Block]


Block = (
    Paragraph
    | Facts
    | Bullets
    | Table
    | Code
    | Excerpt
    | Chart
    | Grid
    | Timeline
    | MemoryMap
    | Folded
    | Section
)


@dataclass(frozen=True, slots=True)
class Document:
    """title: what was done, in a few words. result: the one sentence. tone: `bad`, `good`,
    `unknown` or `plain`, for formats that colour. whole: the command that prints everything. run:
    its id."""

    title: str
    result: Line
    tone: str
    parts: Sequence[Block]
    whole: str
    run: str
    version: str
    removed: Sequence[tuple[str, int]] = field(default=())


def plain(line: Line) -> str:
    """A line as text without marks."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in line)
