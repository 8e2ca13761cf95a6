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
    `bar`. rest: what a series is behind its last number, None where that is not known.
    """

    title: str
    x_label: str
    y_label: str
    x: Sequence[str]
    series: Sequence[tuple[str, Sequence[float | None]]]
    kind: str = "line"
    rest: float | None = None


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

    size: elements of the tensor. spans may lie before its beginning and past its end. left_out:
    spans that are not here.
    """

    tensor: str
    size: int
    spans: Sequence[Span]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A step on a stage of a pipeline. issued, started: ticks in which its host issued it and its
    stream began, None if it never did. text: what it launched. bad: whether anything of it went
    wrong. strayed: whether it copied states from or to a block that is not its own."""

    stage: int
    step: int
    issued: int
    started: int | None
    text: str
    bad: bool = False
    strayed: bool = False


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Steps on the stages of a pipeline, over time. stages: how many. left_out: turns that are not
    here."""

    title: str
    stages: int
    turns: Sequence[Turn]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a state by a row of a block table, between columns.

    whose: which row. blocks: what stands in its columns. meant, used: (column, block) of source and
    target; the block is None where the device read behind the table.
    """

    whose: str
    blocks: Sequence[int]
    meant: Sequence[tuple[int, int | None]]
    used: Sequence[tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class BlockTable:
    """Rows of a block table, and where copies went by them that went elsewhere than meant.
    left_out: copies that are not here."""

    title: str
    copies: Sequence[Copy]
    left_out: int = 0


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
    | Pipeline
    | BlockTable
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


def went(copy: Copy, ends: Sequence[tuple[int, int | None]]) -> str:
    """A copy in words: `column 0 (block 1) → column 1 (block 3)`."""
    (source, _), (target, _) = ends
    if source == target:
        return f"nothing: both columns are {source}"
    return " → ".join(f"column {column} ({_block(copy, column, block)})" for column, block in ends)


def _block(copy: Copy, column: int, block: int | None) -> str:
    if block is None:
        return "behind the table"
    return f"block {block}" + ", of the next row" * (column >= len(copy.blocks))


def plain(line: Line) -> str:
    """A line as text without marks."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in line)
