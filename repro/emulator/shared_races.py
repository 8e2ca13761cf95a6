"""Races in shared memory: threads of a block that touch a byte with nothing between them.

What orders two threads of a block: a barrier of the block, or one that both are counted for; for
threads of one warp also a meeting (bar.warp.sync, shfl.sync, vote.sync...) that both take part in.
That the lanes of a warp execute an instruction together orders nothing.

While threads run, accesses are only noted. At a barrier of all blocks a quick look tells whether
they may be forgotten; else they are gone through one by one.
"""

from __future__ import annotations

import numpy as np

from .copies import Copies
from .distinct import distinct
from .dtypes import Array
from .geometry import WARP, Geometry
from .named_order import NamedOrder
from .order_events import Arrived, Gathered, Meeting, Passed
from .races import Side
from .report import Recorder, touched
from .shadow import (
    AGENT_BITS,
    AGENTS,
    NEVER,
    SITES,
    TIME_SHIFT,
    Conflict,
    Shadow,
    Touch,
    alone,
    written_bytes,
)
from .sites import Site
from .storage import Storage

LIMIT = 1 << 19  # accesses noted before they are gone through
BITS = np.arange(WARP, dtype=np.uint32)
MOST_APART = 4  # times as much, for warps
FEW, APART = 4, 1 << 22  # barriers, bytes: how much the quick look keeps apart


class SharedRaces:
    """The shared memory of one batch of blocks."""

    def __init__(
        self, storage: Storage, geometry: Geometry, recorder: Recorder, grain: int, copies: Copies
    ) -> None:
        self.storage, self.geometry, self.recorder, self.grain = storage, geometry, recorder, grain
        self.copies = copies
        self.lanes = (geometry.lane + 1).astype(np.int32)
        self.noted: list[Touch | Meeting | Passed | Arrived | Gathered] = []
        self.size = 0
        self.begun = False  # whether a copy is among what is noted
        self.met = False  # whether a meeting is
        self.turns = 0  # barriers that some blocks passed without the others
        self.carried = False  # what was gone through since the last barrier of all is in `shadow`
        self.time = 1
        self.shadow: Shadow | None = None
        self.sites: list[Site] = []
        self.numbers: dict[int, int] = {}
        # Up to when what was done is known: to all threads of a block, of a warp, to each lane of
        # each other lane of its warp.
        self.blocks = np.zeros(geometry.count, np.int64)
        self.warps = np.zeros(geometry.lanes // WARP, np.int64)
        self.pairs: Array | None = None
        self.threads: NamedOrder | None = None  # what barriers of some threads made known

    # --- while threads run ---------------------------------------------------------------------
    def touch(self, site: Site, at: Array, lanes: Array | None, values: tuple[Array, ...]) -> None:
        """Note an access: its records in the memory of all blocks."""
        self.noted.append(Touch(site, at, lanes, values))
        self.size += at.size
        if self.size > LIMIT:
            self._go_through()
            self.carried = True

    def issue(self, site: Site, at: Array, lanes: Array, values: tuple[Array, ...]) -> None:
        """Note that a copy has begun, to the records `at`; `touch` will tell when it lands."""
        self.noted.append(Touch(site, at, lanes, values, pending=True))
        self.begun = True

    def meet(self, mask: Array | None, members: Array) -> None:
        """Threads of a warp have met."""
        if self.noted or self.carried:
            last = self.noted[-1] if self.noted else None
            if isinstance(last, Meeting) and last.mask is mask and last.members is members:
                return  # again, with nothing between
            self.noted.append(Meeting(mask, members))
            self.met = True

    def passed(self, rows: Array | None = None) -> None:
        """The blocks `rows` (None: all) have passed a barrier."""
        if rows is None:
            self.settle()
            self.carried = bool(self.copies.pending)
        elif self.noted or self.carried:
            self.noted.append(Passed(rows))
            self.turns += 1
            if self.turns > max(FEW, APART // self.storage.data.size):
                self._shorten()

    def arrived(self, mask: Array, number: int) -> None:
        """Threads have come to a barrier without waiting."""
        if self.noted or self.carried:
            self.noted.append(Arrived(mask, number))

    def gathered(self, mask: Array, number: int) -> None:
        """Some threads of their blocks have passed a barrier."""
        if self.noted or self.carried:
            self.noted.append(Gathered(mask, number))

    def settle(self) -> None:
        """Look at what was noted; nothing noted later is unordered with it."""
        if not self.noted:
            if self.carried:
                self.blocks[:] = self.time
                self.time += 1
            return
        if self._asynchronous() or not self._quiet():
            self._go_through()
        self._forget()
        self.blocks[:] = self.time
        self.time += 1

    def _forget(self) -> None:
        self.noted.clear()
        self.size = self.turns = 0
        self.begun = self.met = False

    def _asynchronous(self) -> bool:
        """Whether accesses before the last barrier still count."""
        return self.carried or self.begun or bool(self.copies.pending)

    # --- the quick look ------------------------------------------------------------------------
    def _turns(self) -> tuple[list[tuple[Touch, Array | None]], Array]:
        """For each touch how many barriers its blocks had passed by then, and how many by now."""
        passed = np.zeros(self.geometry.count, np.int64)
        found: list[tuple[Touch, Array | None]] = []
        for each in self.noted:
            if isinstance(each, Passed):
                passed = passed + each.rows
            elif isinstance(each, Touch):
                found.append((each, passed if self.turns else None))
        return found, passed

    def _quiet(self) -> bool:
        """Whether no byte is written and touched by another thread between two barriers.

        What a block does after one more barrier counts as done elsewhere.
        """
        if not any(isinstance(each, Touch) and each.site.writes for each in self.noted):
            return True
        size = self.storage.data.size
        touches, most = self._turns()
        moved = []
        for touch, passed in touches:
            if passed is not None and passed.any():
                further = self._of_rows(passed, touch.lanes) * (size // touch.site.width)
                touch = touch._replace(at=touch.at + further)
            lanes = self.lanes if touch.lanes is None else self.lanes[touch.lanes]
            moved.append((touch, lanes))
        if self.turns:
            size *= 1 + int(most.max())
        if alone(moved, size, lane=self.geometry.lane):
            return True
        if not self.met:
            return False
        # No warp with another one, and no thread of a warp with another since they met.
        apart = [(touch, (mine - 1) // WARP + 1) for touch, mine in moved]
        return alone(apart, size, lane=self.geometry.lane) and self._quiet_in_warps()

    def _quiet_in_warps(self) -> bool:
        """The same between two meetings of a whole warp, for threads of one warp."""
        size = self.storage.data.size
        threads = self._threads()
        turns = np.zeros(len(threads), np.int64)
        moved = []
        for each in self.noted:
            if isinstance(each, Passed):
                turns = turns + np.repeat(each.rows, self.geometry.padded // WARP)
            elif isinstance(each, Meeting):
                turns = turns + self._whole(each, threads)
            elif isinstance(each, Touch):
                lanes = self.geometry.lane if each.lanes is None else each.lanes
                at = each.at + turns[lanes // WARP] * (size // each.site.width)
                moved.append((each._replace(at=at), self.lanes[lanes]))
        size *= 1 + int(turns.max())
        return size <= APART * MOST_APART and alone(moved, size, lane=self.geometry.lane)

    def _threads(self) -> Array:
        """bool[warps, 32]: the lanes that are threads."""
        running = self.geometry.running
        threads = np.ones(self.geometry.lanes, np.bool_) if running is None else running
        return threads.reshape(-1, WARP)

    def _whole(self, meeting: Meeting, threads: Array) -> Array:
        """bool[warps]: those of which all threads met each other."""
        here = threads if meeting.mask is None else meeting.mask.reshape(-1, WARP)
        members = meeting.members.view(np.uint32)
        if members.size == 1:
            named = np.broadcast_to((members >> BITS) & 1, threads.shape).astype(np.bool_)
        else:
            common = np.bitwise_and.reduce(members.reshape(-1, WARP), axis=1)
            named = ((common[:, None] >> BITS) & 1).astype(np.bool_)
        whole: Array = ((here == threads) & (named | ~threads)).all(axis=1)
        return whole

    def _of_rows(self, values: Array, lanes: Array | None) -> Array:
        lanes = self.geometry.lane if lanes is None else lanes
        found: Array = values[lanes // self.geometry.padded]
        return found

    def _shorten(self) -> None:
        """Forget what lies before the last barrier of each block."""
        if self._asynchronous() or not self._quiet():
            self._go_through()
            self.carried = True
            return
        touches, now = self._turns()
        self._forget()
        for touch, passed in touches:
            if passed is None:
                continue
            late = self._of_rows(passed == now, touch.lanes)
            if late.any():
                lanes = self.geometry.lane if touch.lanes is None else touch.lanes
                at = np.broadcast_to(touch.at, lanes.shape)
                self.noted.append(touch._replace(at=at[late], lanes=lanes[late]))
                self.size += int(late.sum())

    # --- one by one ----------------------------------------------------------------------------
    def _go_through(self) -> None:
        if self.shadow is None:
            granules = self.storage.data.size >> self.grain
            self.shadow = Shadow(granules, self.grain, _warp)
        for each in self.noted:
            if isinstance(each, Touch):
                self._touch(self.shadow, each)
                continue
            if isinstance(each, Passed):
                self.blocks[each.rows] = self.time
            elif isinstance(each, Meeting):
                self._meet(each)
            else:
                if self.threads is None:
                    self.threads = NamedOrder(self.geometry)
                if isinstance(each, Arrived):
                    self.threads.arrive(each.mask, each.number, self.time)
                else:
                    self.threads.gather(each.mask, each.number, self.time)
            self.time += 1
        self._forget()

    def _touch(self, shadow: Shadow, touch: Touch) -> None:
        site = touch.site
        lanes = self.geometry.lane if touch.lanes is None else touch.lanes
        pieces = site.width >> self.grain
        number = self.numbers.setdefault(id(site), len(self.numbers))
        if number == len(self.sites):
            self.sites.append(site)
        granules = np.broadcast_to(touch.at, lanes.shape) * pieces
        raw = None
        if site.writes and not site.atomic:
            raw = written_bytes(touch, lanes).reshape(-1, 1 << self.grain)
        if pieces > 1:
            granules = (granules[:, None] + np.arange(pieces)).reshape(-1)
            lanes = np.repeat(lanes, pieces)
        time = NEVER if touch.pending else self.time
        stamp = (time << TIME_SHIFT) | ((number & SITES) << AGENT_BITS)
        entries = (lanes + 1) | stamp
        for conflict in shadow.touch(site, granules, entries, self._known, raw):
            self._report(site, granules, lanes, conflict)

    def _known(self, lanes: Array, others: Array) -> Array:
        known: Array = self.blocks[lanes // self.geometry.padded]
        warp = lanes // WARP
        if self.threads is not None:
            known = np.maximum(known, self.threads.known_to(lanes, others))
        alike = warp == others // WARP
        inside = self.warps[warp]
        if self.pairs is not None:
            inside = np.maximum(inside, self.pairs[warp, lanes % WARP, others % WARP])
        return np.where(alike, np.maximum(known, inside), known)

    def _meet(self, meeting: Meeting) -> None:
        threads = self._threads()
        here = threads if meeting.mask is None else meeting.mask.reshape(-1, WARP)
        whole = self._whole(meeting, threads)
        self.warps[whole] = self.time
        part = (~whole & here.any(1)).nonzero()[0]
        if not part.size:
            return
        if self.pairs is None:
            self.pairs = np.zeros((here.shape[0], WARP, WARP), np.int64)
        lanes = self.geometry.lanes
        members = np.broadcast_to(meeting.members.view(np.uint32), lanes).reshape(-1, WARP)[part]
        named = ((members[:, :, None] >> BITS) & 1).astype(np.bool_)
        together = named & here[part][:, :, None] & here[part][:, None, :]
        known = np.maximum(self.pairs[part], self.warps[part][:, None, None])
        # What any of those it meets knows, a lane knows from now on.
        spread = known.copy()
        for lane in range(WARP):
            theirs = np.where(together[:, :, lane, None], known[:, lane, None, :], 0)
            spread = np.maximum(spread, theirs)
        self.pairs[part] = np.where(together, self.time, spread)

    def _report(self, site: Site, granules: Array, lanes: Array, conflict: Conflict) -> None:
        """Record it, but for writes of one instruction that leave the same value."""
        which, earlier, same, at_once = conflict
        sites = (earlier >> AGENT_BITS) & SITES
        if same is not None:
            differ = ~(same & (sites == self.numbers[id(site)]))
            which, earlier, sites = which[differ], earlier[differ], sites[differ]
        row = self.storage.data.size // self.geometry.count
        for number in distinct(sites):
            chosen = which[sites == number]
            others = ((earlier[sites == number]) & AGENTS) - 1
            offsets = (granules[chosen] << self.grain) % row
            self.recorder.race(
                self.storage,
                Side(site, self.geometry.identities(lanes[chosen])),
                Side(self.sites[number], self.geometry.identities(others)),
                touched(offsets, 1 << self.grain, 1),
                self.geometry,
                at_once=at_once,
            )


def _warp(lanes: Array) -> Array:
    return lanes // WARP
