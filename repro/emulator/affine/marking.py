"""What a decided launch writes is marked: the bytes of every thread, for blocks along x at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..geometry import Triple
from ..storage import Storage
from .traces import Access, Touched
from .where import live

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
    alive = live(access.where)
    every = np.ones(lanes, np.bool_) if alive is None else np.broadcast_to(alive, (lanes,))
    by, at = access.address.by, access.address.at
    ends = []
    for axis, size in enumerate(grid):
        pair = access.where.ranges[axis] or (np.zeros(1, np.int64), np.full(1, size))
        ends.append([np.broadcast_to(end, (lanes,)).tolist() for end in pair])
    offsets = [0] * lanes if at is None else np.broadcast_to(at, (lanes,)).tolist()
    for lane in every.nonzero()[0].tolist():
        (x, y, z) = ((first[lane], end[lane]) for first, end in ends)
        count = x[1] - x[0] if by[0] else min(1, x[1] - x[0])
        if count < 1:
            continue
        start = access.base + offsets[lane] + min(by[0] * x[0], by[0] * (x[1] - 1))
        for row in range(*z):
            for column in range(*y):
                yield start + by[1] * column + by[2] * row, abs(by[0]) or 1, count
