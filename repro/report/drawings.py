"""Where the parts of a picture lie: bands, boxes and arcs for the page's own SVG. Pure.

pygal draws charts and knows none of these. Numbers are in units of the picture, which is scaled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..escape import printable
from .document import BlockTable, Copy, MemoryMap, Pipeline, Turn, went

BAND = 1_000  # width of a memory map
NARROWEST = 4.0  # of a stretch of it that must be seen
FAR = 2  # tensors' lengths from the tensor, beyond which the scale is another
LABEL, TICK, ROW = 112, 60, 24  # of a pipeline: names at the left, a tick, a host or a stream
CELL, TALL = 74, 30  # of a block table
LONGEST_BLOCK = 12  # digits of a block number
ARC = 34  # room above and below a row of a block table


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with its words. kind: a class of the page's style. title: said on hovering."""

    x: float
    y: float
    width: float
    height: float
    text: str
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Arc:
    """A way from one column to another. d: of an SVG path. kind: as of `Box`."""

    d: str
    kind: str


def band(memory: MemoryMap) -> dict[str, Any]:
    """A memory map: a band of the tensor, and stretches on, before or behind it.

    far: whether what lies outside is at another scale; then dashes stand where that begins.
    """
    size = max(1, memory.size)
    low = min([0, *(span.first for span in memory.spans)])
    high = max([size, *(span.last + 1 for span in memory.spans)])
    far = high - size > FAR * size or -low > FAR * size
    at = _broken(low, size, high) if far else _even(low, high)

    def stretch(first: int, end: int) -> tuple[float, float]:
        width = max(NARROWEST, at(end) - at(first))
        return min(at(first), BAND - width), width

    spans = [
        (*stretch(span.first, span.last + 1), span.bad, printable(span.label), span)
        for span in memory.spans
    ]
    tensor = (at(0), at(memory.size) - at(0))
    breaks = [at(end) for end, there in ((0, low < 0), (size, high > size)) if far and there]
    return {"width": BAND, "tensor": tensor, "spans": spans, "far": far, "breaks": breaks}


def _even(low: int, high: int) -> Callable[[int], float]:
    return lambda element: (element - low) * BAND / (high - low)


def _broken(low: int, size: int, high: int) -> Callable[[int], float]:
    """The tensor has the greater part of the width, however far away something lies."""
    left, right = (0.15 * BAND if low < 0 else 0.0), (0.85 * BAND if high > size else BAND)

    def at(element: int) -> float:
        if element < 0:
            return left * (element - low) / -low
        if element > size:
            return right + (BAND - right) * (element - size) / (high - size)
        return left + (right - left) * element / size

    return at


def pipeline(part: Pipeline) -> dict[str, Any]:
    """Two rows a stage, its host and its stream; a box for each step where it was issued, and one
    where it began. What shares a place and a tick shares its width."""
    first = min((turn.issued for turn in part.turns), default=0)
    ticks = [at for turn in part.turns for at in (turn.issued, turn.started) if at is not None]
    last = max(ticks, default=0)
    places = Counter((turn.stage, lane, at) for turn in part.turns for lane, at in _places(turn))
    taken: Counter[tuple[int, int, int]] = Counter()
    boxes = []
    for turn in part.turns:
        for lane, at in _places(turn):
            key = (turn.stage, lane, at)
            width = (TICK - 4) / places[key]
            x = LABEL + (at - first) * TICK + 2 + taken[key] * width
            taken[key] += 1
            y = _row(turn.stage, lane)
            kind = _kind(turn) if lane else "host"
            boxes.append(Box(x, y + 2, width, ROW - 4, _name(turn, lane), kind, _says(turn)))
    rows = [
        (_row(stage, lane), f"stage {stage} {name}")
        for stage in range(part.stages)
        for lane, name in enumerate(("host", "stream"))
    ]
    return {
        "label": LABEL,
        "width": LABEL + (last - first + 1) * TICK + 4,
        "height": _row(part.stages, 0) + 20,
        "rows": rows,
        "boxes": boxes,
        "ticks": [(LABEL + (at - first + 0.5) * TICK, at) for at in range(first, last + 1)],
        "says": [
            f"stage {turn.stage}, {_says(turn)}" for turn in part.turns if turn.bad or turn.strayed
        ],
    }


def _row(stage: int, lane: int) -> int:
    return stage * (2 * ROW + 10) + lane * ROW + 4


def _places(turn: Turn) -> list[tuple[int, int]]:
    """(0 host or 1 stream, tick)."""
    return [(0, turn.issued)] + ([] if turn.started is None else [(1, turn.started)])


def _kind(turn: Turn) -> str:
    if turn.bad:
        return "bad"
    return "astray" if turn.strayed else "step"


def _name(turn: Turn, lane: int) -> str:
    return f"{turn.step}" + (" ✗" * turn.bad + " ⚠" * turn.strayed) * lane


def _says(turn: Turn) -> str:
    began = "never began" if turn.started is None else f"began in tick {turn.started}"
    wrong = ", with wrong accesses" * turn.bad + ", with a state copied astray" * turn.strayed
    launches = printable(turn.text)
    return f"step {turn.step}: issued in tick {turn.issued}, {began}, launches {launches}{wrong}"


def blocks(part: BlockTable) -> list[dict[str, Any]]:
    """A row of cells for each copy: below it the way that was meant, above it the one it went."""
    return [_strip(copy) for copy in part.copies]


def _strip(copy: Copy) -> dict[str, Any]:
    beyond = {column: block for column, block in copy.used if column >= len(copy.blocks)}
    columns = max([len(copy.blocks), *(column + 1 for column in beyond)])
    cells = [
        Box(column * CELL + 2, ARC, CELL - 4, TALL, _number(block), "cell", f"column {column}")
        for column, block in enumerate(copy.blocks)
    ]
    cells += [
        Box(column * CELL + 2, ARC, CELL - 4, TALL, _number(beyond.get(column)), "beyond")
        for column in range(len(copy.blocks), columns)
    ]
    arcs = [
        *_arc(copy.meant[0][0], copy.meant[1][0], ARC + TALL, 1, "meant"),
        *_arc(copy.used[0][0], copy.used[1][0], ARC, -1, "used"),
    ]
    whose = printable(copy.whose)
    meant, used = went(copy, copy.meant), went(copy, copy.used)
    return {
        "width": columns * CELL + 4,
        "height": 2 * ARC + TALL,
        "cells": cells,
        "arcs": arcs,
        "whose": whose,
        "says": f"meant: {meant}; copied: {used}",
    }


def _number(block: int | None) -> str:
    if block is None:
        return "?"
    text = str(block)
    return text if len(text) <= LONGEST_BLOCK else f"{text[:LONGEST_BLOCK]}…"


def _arc(source: int, target: int, edge: float, side: int, kind: str) -> list[Arc]:
    """From the middle of one cell's edge to that of another, with a head; none to itself."""
    if source == target:
        return []
    start, end = (source + 0.5) * CELL, (target + 0.5) * CELL
    top = edge + side * (ARC - 8) * 1.3  # a cubic reaches three quarters of its handles
    head = edge + side * 8
    middle = f"C{start:.0f} {top:.0f} {end:.0f} {top:.0f}"
    return [
        Arc(f"M{start:.0f} {edge:.0f}{middle} {end:.0f} {head:.0f}", kind),
        Arc(f"M{end - 5:.0f} {head:.0f}h10L{end:.0f} {edge:.0f}Z", f"{kind} head"),
    ]
