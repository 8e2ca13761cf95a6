"""Races between the blocks of a launch, which nothing but atomic accesses orders.

Each buffer notes what touches it. At the end of the launch a quick look tells whether blocks may
have raced. If they may, or there is too much to note, it is gone through batch by batch, and what
was touched is kept for the batches after it.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from .distinct import distinct, numbered
from .dtypes import Array
from .geometry import Geometry
from .races import Races, Side
from .report import touched
from .shadow import AGENT_BITS, AGENTS, SITES, TIME_SHIFT, Shadow, Touch, alone, written_bytes
from .sites import RACES, Site
from .storage import Storage

# Accesses to one buffer noted before they are gone through: as many as what is kept of them then
# has entries, for an entry takes about as much memory as a note; within bounds.
LIMIT, MOST = 1 << 20, 1 << 24
THREAD_BITS = 44  # of an entry of an earlier batch: the thread's number in the launch, from 1
THREADS = (1 << THREAD_BITS) - 1
LEAD = 31  # bytes before the first, so that granules are aligned as addresses are
_FIRST = 1 << TIME_SHIFT


class GlobalRaces:
    """What the blocks of a launch do to one buffer."""

    def __init__(self, storage: Storage, races: Races, grain: int) -> None:
        self.storage, self.races, self.grain = storage, races, grain
        self.lead = storage.base & LEAD
        self.size = storage.data.size + self.lead
        self.noted: list[tuple[Touch, Geometry]] = []
        self.count = 0
        self.limit = min(max(LIMIT, self.size >> grain), MOST)
        self.geometry: Geometry
        self.sites: list[Site] = []
        self.numbers: dict[int, int] = {}
        # By manner, of what was gone through the latest access to each granule and one of another
        # block; and what was written.
        self.earlier: dict[str, list[Array]] = {}
        self.content: Array | None = None

    def touch(self, site: Site, at: Array, lanes: Array | None, values: tuple[Array, ...]) -> None:
        """Note an access: its records of the window of its width."""
        self.noted.append((Touch(site, at, lanes, values), self.geometry))
        self.count += at.size
        if self.count > self.limit:
            self._go_through(self._taken(), again=True)

    def settle(self) -> None:
        """The launch has ended."""
        if not self.earlier and not any(touch.site.writes for touch, _ in self.noted):
            return
        noted = self._taken()
        if noted and (self.earlier or not self._quiet(noted)):
            self._go_through(noted, again=False)

    def _taken(self) -> list[tuple[Touch, Geometry]]:
        """What is noted, forgotten there; records from here on counted from the lead."""
        noted, self.noted, self.count = self.noted, [], 0
        if not self.lead:
            return noted
        placed = []
        for touch, geometry in noted:
            width = touch.site.width
            further = (self.lead + -self.storage.base % width) // width
            placed.append((touch._replace(at=touch.at + further), geometry))
        return placed

    def _quiet(self, noted: list[tuple[Touch, Geometry]]) -> bool:
        """Whether a quick look sees no race."""
        if not any(touch.site.writes for touch, _ in noted):
            return True
        touches = []
        before: Geometry | None = None
        for touch, geometry in noted:
            if geometry is not before:
                blocks = (geometry.row + (geometry.first + 1)).astype(np.int32)
                if blocks.size == 1:
                    blocks = np.broadcast_to(blocks, geometry.lanes)
                before = geometry
            touches.append((touch, blocks if touch.lanes is None else blocks[touch.lanes]))
        return alone(touches, self.size)

    def _go_through(self, noted: list[tuple[Touch, Geometry]], *, again: bool) -> None:
        """Look at what was noted batch by batch. again: more will come."""
        now = self.geometry
        for first, batch in groupby(noted, key=lambda each: each[1].first):
            part = list(batch)
            self.geometry = part[0][1]
            self._batch(part, again=again or first != now.first)
        self.geometry = now

    def _batch(self, part: list[tuple[Touch, Geometry]], *, again: bool) -> None:
        noted = [touch for touch, _ in part]
        writes = any(touch.site.writes for touch in noted)
        if not self._quiet(part):
            self._within(noted)
        if self.earlier and (writes or not self.earlier.keys() <= {"read", "poll"}):
            for touch in noted:
                self._across(touch)
        if again:
            for touch in noted:
                self._keep(touch)

    def _block(self, lanes: Array) -> Array:
        return lanes // self.geometry.padded

    def _number(self, site: Site) -> int:
        number = self.numbers.setdefault(id(site), len(self.numbers))
        if number == len(self.sites):
            self.sites.append(site)
        return number & SITES

    def _granules(self, touch: Touch) -> tuple[Array, Array]:
        """Granules and lanes of each part of the accesses."""
        lanes = self.geometry.lane if touch.lanes is None else touch.lanes
        pieces = touch.site.width >> self.grain
        granules = np.broadcast_to(touch.at, lanes.shape) * pieces
        if pieces > 1:
            granules = (granules[:, None] + np.arange(pieces)).reshape(-1)
            lanes = np.repeat(lanes, pieces)
        return granules, lanes

    def _raw(self, touch: Touch) -> Array | None:
        if touch.site.manner != "write":
            return None
        lanes = self.geometry.lane if touch.lanes is None else touch.lanes
        return written_bytes(touch, lanes).reshape(-1, 1 << self.grain)

    # --- blocks of this batch ------------------------------------------------------------------
    def _within(self, noted: list[Touch]) -> None:
        """Races of blocks of this batch; an agent is a lane, its group the block."""
        parts = [self._granules(touch) for touch in noted]
        places, compact = numbered(np.concatenate([p[0] for p in parts]))
        shadow = Shadow(places.size, self.grain, self._block)
        begin = 0
        for touch, (granules, lanes) in zip(noted, parts, strict=True):
            mine = compact[begin : begin + granules.size]
            begin += granules.size
            stamp = _FIRST | self._number(touch.site) << AGENT_BITS
            entries = (lanes + 1) | stamp
            found = shadow.touch(touch.site, mine, entries, self._known, self._raw(touch))
            for which, earlier, same, _ in found:
                others = (earlier & AGENTS) - 1
                apart = self._block(lanes[which]) != self._block(others)
                if apart.any():
                    self._report(
                        touch.site,
                        granules[which[apart]],
                        lanes[which[apart]],
                        (earlier[apart] >> AGENT_BITS) & SITES,
                        self.geometry.identities(others[apart]),
                        None if same is None else same[apart],
                    )

    def _known(self, lanes: Array, others: Array) -> Array:
        """Inside a block threads may be in order or not: that is not asked here."""
        return np.where(self._block(lanes) == self._block(others), _FIRST, 0)

    # --- blocks of earlier batches -------------------------------------------------------------
    def _across(self, touch: Touch) -> None:
        site = touch.site
        granules, lanes = self._granules(touch)
        raw = self._raw(touch)
        mine = self.geometry.identities(lanes) // self.geometry.threads
        for manner in RACES[site.manner]:
            for kept in self.earlier.get(manner, ()):
                entries = kept[granules]
                if not np.logical_or.reduce(entries):
                    continue
                which = ((entries != 0) & (self._blocks(entries) != mine)).nonzero()[0]
                if not which.size:
                    continue
                same = None
                if raw is not None and manner == "write" and self.content is not None:
                    same = (raw[which] == self.content[granules[which]]).all(axis=1)
                found = entries[which]
                threads = (found & THREADS) - 1
                sites = found >> THREAD_BITS
                self._report(site, granules[which], lanes[which], sites, threads, same)

    def _blocks(self, entries: Array) -> Array:
        """The block of each entry of an earlier access."""
        blocks: Array = ((entries & THREADS) - 1) // self.geometry.threads
        return blocks

    def _keep(self, touch: Touch) -> None:
        granules, lanes = self._granules(touch)
        manner = touch.site.manner
        count = (self.size >> self.grain) + LEAD
        if manner not in self.earlier:
            self.earlier[manner] = [np.zeros(count, np.int64)]
        kept = self.earlier[manner]
        latest = kept[0]
        number = self._number(touch.site) << THREAD_BITS
        entries = (self.geometry.identities(lanes) + 1) | number
        before = latest[granules]
        latest[granules] = entries
        after = latest[granules]
        if np.logical_or.reduce(before) or np.logical_or.reduce(after != entries):
            now = self._blocks(after)
            for displaced in (before, entries):
                which = ((displaced != 0) & (self._blocks(displaced) != now)).nonzero()[0]
                if which.size and len(kept) == 1:
                    kept.append(np.zeros(count, np.int64))
                if which.size:
                    kept[1][granules[which]] = displaced[which]
        raw = self._raw(touch)
        if raw is not None:
            if self.content is None:
                self.content = np.zeros((count, 1 << self.grain), np.uint8)
            self.content[granules] = raw

    def _report(
        self,
        site: Site,
        granules: Array,
        lanes: Array,
        sites: Array,
        threads: Array,
        same: Array | None,
    ) -> None:
        mine = self.geometry.identities(lanes)
        offsets = (granules << self.grain) - self.lead
        benign = np.zeros(sites.size, np.bool_) if same is None else same
        for number in distinct(sites):
            for kind in (False, True):
                chosen = (sites == number) & (benign == kind)
                if chosen.any():
                    self.races.add(
                        self.storage,
                        Side(site, mine[chosen]),
                        Side(self.sites[number], threads[chosen]),
                        touched(offsets[chosen], 1 << self.grain, self.storage.itemsize),
                        self.geometry,
                        benign=kind,
                    )


def watch(storages: list[Storage], races: Races, grain: int) -> list[GlobalRaces]:
    """Have each storage that may be written note what touches it."""
    watched = []
    for storage in storages:
        if not storage.frozen:
            watcher = GlobalRaces(storage, races, grain)
            storage.watch = watcher.touch
            watched.append(watcher)
    return watched
