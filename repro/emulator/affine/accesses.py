"""Accesses of all threads against the buffers of a launch: within, or where not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..dtypes import Array
from ..geometry import Triple, geometry
from ..memory import kind_outside
from ..report import Recorder
from ..storage import Storage
from .memo import Memo
from .traces import Access, Touched
from .value import Value
from .walk import UndecidedError
from .where import Where, acting, below, both, without

MOST_CELLS = 1 << 20  # wrong accesses and their neighbours that are listed one by one
MOST_KEPT = 1 << 10  # of them, for a launch that does the same
MOST_BLOCKS = 1 << 12  # between the first and the last of them


Cells = tuple[Array, Array, Array]  # accesses one by one: block, lane of its block, offset


class Accesses:
    """Holds what a launch touches against its buffers.

    initialised, owners: whether those checks are made.
    """

    def __init__(
        self,
        recorder: Recorder,
        block: Triple,
        memo: Memo,
        *,
        initialised: bool,
        owners: bool,
    ) -> None:
        self.recorder = recorder
        self.block, self.grid = block, memo.reaches.grid
        self.initialised, self.owners = initialised, owners
        self.memo = memo

    def look(self, touched: Touched, storage: Storage) -> None:
        """Record what is touched outside of a buffer; UndecidedError where an access has to be
        executed.
        """
        if storage.starts is not None or (storage.frozen and touched.written):
            raise UndecidedError
        if self.owners and storage.owners is not None:
            raise UndecidedError
        begin, end = storage.base, storage.base + storage.size
        if touched.first < begin or touched.end > end:
            for access in touched.accesses:
                if access.first < begin or access.end > end:
                    self._wrong(access, storage)
        if self.initialised and not _written(storage, touched):
            raise UndecidedError

    def _wrong(self, access: Access, storage: Storage) -> None:
        """Record the accesses that are not within their buffer."""
        site, address, where = access.site, access.address, access.where
        ahead, limit = access.base - storage.base, storage.size - site.width
        key = ("missed", id(address.at), address.by, id(where), ahead, limit)
        found = self.memo.once(
            key, (address, where), lambda: self._missed(_moved(address, ahead), limit, where)
        )
        if sum(blocks.size for blocks, _, _ in found) > MOST_KEPT:
            self.memo.forget(key)
        for blocks, lanes, offsets in found:
            first, count = int(blocks[0]), int(blocks[-1] - blocks[0]) + 1
            batch = geometry(first, count, self.block, self.grid)
            number = (blocks - first) * batch.padded + lanes
            kind = kind_outside(site, storage)
            self.recorder.add(kind, site.place, storage, offsets, number, site.width, batch)

    def _missed(self, offset: Value, limit: int, where: Where) -> list[Cells]:
        """The accesses at `offset` below 0, and those beyond `limit`."""
        before, most = below(offset, 0, self.grid), below(offset, limit + 1, self.grid)
        beyond = None if most is None else without(most, self.grid)
        if before is None or beyond is None:
            found = [self._cells(offset, where)]
        else:
            found = [self._cells(offset, both(where, part)) for part in (before, beyond)]
        chosen = []
        for blocks, lanes, offsets in found:
            wrong = ((offsets < 0) | (offsets > limit)).nonzero()[0]
            if not wrong.size:
                continue
            wrong = wrong[np.lexsort((lanes[wrong], blocks[wrong]))]
            chosen.append((blocks[wrong], lanes[wrong], offsets[wrong]))
            if int(blocks[wrong[-1]] - blocks[wrong[0]]) >= MOST_BLOCKS:
                raise UndecidedError
        return chosen

    def _cells(self, offset: Value, where: Where) -> Cells:
        """Block, lane and offset of every access, lane after lane."""
        padded = geometry(0, 1, self.block, self.grid).padded
        lanes, spans = acting(where, self.grid, padded)
        at = 0 if offset.at is None else offset.at[lanes]
        starts = [first for first, _ in spans]
        counts = [end - first for first, end in spans]
        total = counts[0] * counts[1] * counts[2]
        if int(total.sum()) > MOST_CELLS:
            raise UndecidedError
        which = np.repeat(np.arange(lanes.size), total)
        rest = np.arange(which.size) - np.repeat(np.cumsum(total) - total, total)
        targets = np.broadcast_to(offset.base + at, lanes.shape)[which]
        blocks, factor = np.zeros(which.size, np.int64), 1
        for axis in range(3):
            if self.grid[axis] > 1:
                coordinate = starts[axis][which] + rest % counts[axis][which]
                rest = rest // counts[axis][which]
                targets = targets + offset.by[axis] * coordinate
                blocks = blocks + factor * coordinate
                factor *= self.grid[axis]
        return blocks, lanes[which], targets


def _written(storage: Storage, touched: Touched) -> bool:
    """Whether somebody has written every byte that is read, as far as it is the buffer's."""
    marks, begin = storage.marks, storage.base
    if marks is None or touched.read is None:
        return True

    def all_between(first: int, end: int) -> bool:
        return bool(marks[max(first - begin, 0) : max(end - begin, 0)].all())

    # what lies between two accesses need not have been written
    return all_between(*touched.read) or all(
        all_between(access.first, access.end) for access in touched.accesses if access.site.reads
    )


def _moved(address: Value, base: int) -> Value:
    """The same at another base."""
    by = base - address.base
    return replace(address, base=base, low=address.low + by, high=address.high + by)
