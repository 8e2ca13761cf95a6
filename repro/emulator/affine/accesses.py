"""Where the accesses of all threads go: within their buffer, or where not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..dtypes import Array
from ..geometry import Triple, geometry
from ..memory import kind_outside
from ..report import Recorder
from ..sites import Site
from ..storage import TAG_BITS, Storage
from .apart import Footprint, apart
from .memo import Memo
from .steps import Step
from .value import Value
from .walk import UndecidedError
from .where import Where, below, both, live, without

MOST_CELLS = 1 << 20  # wrong accesses and their neighbours that are listed one by one
MOST_KEPT = 1 << 10  # of them, for a launch that does the same
MOST_BLOCKS = 1 << 12  # between the first and the last of them


Cells = tuple[Array, Array, Array]  # accesses one by one: block, lane of its block, offset


class Accesses:
    """Looks at each access of a walk.

    sites: by the identity of an instruction. storages: by the tag of their addresses. initialised,
    owners: whether those checks are made.
    """

    def __init__(
        self,
        sites: Mapping[int, Site],
        storages: Mapping[int, Storage],
        recorder: Recorder,
        block: Triple,
        memo: Memo,
        *,
        initialised: bool,
        owners: bool,
    ) -> None:
        self.sites, self.storages, self.recorder = sites, storages, recorder
        self.block, self.grid = block, memo.reaches.grid
        self.initialised, self.owners = initialised, owners
        self.memo, self.reaches = memo, memo.reaches
        self.prints: dict[int, list[Footprint]] = {}

    def look(self, step: Step, address: Value, where: Where) -> None:
        """Look at one access; UndecidedError for what is not decided here."""
        site = self.sites.get(id(step.instruction))
        if site is None or site.keeps:
            raise UndecidedError
        reach = self.reaches.of(address, where)
        if reach is None:
            return  # nobody does it
        base = address.base + step.offset
        first, last = base + reach.first, base + reach.last
        storage = self.storages.get(first >> TAG_BITS)
        if storage is None or storage.starts is not None or last >> TAG_BITS != first >> TAG_BITS:
            raise UndecidedError
        if (storage.frozen and site.writes) or (self.owners and storage.owners is not None):
            raise UndecidedError
        by = address.by
        if (by[0] | by[1] | by[2] | reach.bits | base) & (site.width - 1):
            raise UndecidedError
        begin, limit = storage.base, storage.base + storage.size - site.width
        if first < begin or last > limit:
            self._wrong(site, storage, address, base, where)
            first, last = max(first, begin), min(last, limit)
        looks = self.initialised and site.reads and first <= last
        if looks and storage.marks is not None:
            read = storage.marks[first - begin : last - begin + site.width]
            if not read.all():
                raise UndecidedError
        self.prints.setdefault(storage.base, []).append(
            Footprint(site.manner, base, site.width, reach)
        )

    def _wrong(self, site: Site, storage: Storage, address: Value, base: int, where: Where) -> None:
        """Record the accesses that are not within their buffer."""
        ahead, limit = base - storage.base, storage.size - site.width
        offset = replace(
            address,
            base=ahead,
            low=address.low - address.base + ahead,
            high=address.high - address.base + ahead,
        )
        key = ("missed", id(address.at), address.by, id(where), ahead, limit)
        found = self.memo.once(key, (address, where), lambda: self._missed(offset, limit, where))
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
        alive = live(where)
        every = np.ones(padded, np.bool_) if alive is None else np.broadcast_to(alive, (padded,))
        lanes = every.nonzero()[0]
        at = 0 if offset.at is None else offset.at[lanes]
        starts, counts = [], []
        for axis, size in enumerate(self.grid):
            first, end = where.ranges[axis] or (np.zeros(1, np.int64), np.full(1, size))
            first, end = (e if e.size == 1 else e[lanes] for e in (first, end))
            starts.append(np.broadcast_to(first, lanes.shape))
            counts.append(np.broadcast_to(end - first, lanes.shape))
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

    def apart(self) -> bool:
        """Whether blocks keep out of each other's way."""
        return all(apart(prints, self.reaches) for prints in self.prints.values())
