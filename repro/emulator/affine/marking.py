"""What a decided launch writes is marked: the bytes of every thread, for blocks along x at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..geometry import Triple
from ..storage import Storage
from .traces import Access, Touched
from .where import acting

MOST_ROWS = 1 << 15  # of blocks along x that are marked one after the other


def mark(touched: Touched, storage: Storage, grid: Triple, lanes: int) -> bool:
    """Set the marks of all bytes that are written; False, and none, where that is too much work.

    lanes: of one block.
    """
    marks = storage.marks
    if marks is None:
        return True
    writing = [access for access in touched.accesses if access.site.writes]
    if len(writing) * lanes * grid[1] * grid[2] > MOST_ROWS:
        return False
    for access in writing:
        width = access.site.width
        for offset, step, count in _rows(access, grid, lanes):
            first = offset - storage.base
            # of the row, what lies in the buffer
            skipped = max(0, -(first // step))
            end = min(count, (storage.size - width - first) // step + 1)
            if end > skipped:
                begin = marks[first + skipped * step :]
                as_strided(begin, (end - skipped, width), (step, 1))[...] = 1
    return True


def _rows(access: Access, grid: Triple, lanes: int) -> Iterator[tuple[int, int, int]]:
    """(least address, bytes from one block to the next, number of blocks) along x."""
    by, at = access.address.by, access.address.at
    chosen, spans = acting(access.where, grid, lanes)
    offsets = np.zeros(lanes, np.int64) if at is None else np.broadcast_to(at, (lanes,))
    ends = [(first.tolist(), end.tolist()) for first, end in spans]
    for place, offset in enumerate(offsets[chosen].tolist()):
        x, y, z = ((first[place], end[place]) for first, end in ends)
        count = x[1] - x[0] if by[0] else min(1, x[1] - x[0])
        if count < 1:
            continue
        start = access.base + offset + min(by[0] * x[0], by[0] * (x[1] - 1))
        for row in range(*z):
            for column in range(*y):
                yield start + by[1] * column + by[2] * row, abs(by[0]) or 1, count
