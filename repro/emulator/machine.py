"""Scheduling: which threads run which block next.

Threads that are at the same block run it together. When they part, turns.py says who runs next. A
barrier holds threads until all living threads of their own block have arrived; exited threads count
as arrived.
"""

from __future__ import annotations

import numpy as np

from ..errors import UnsupportedError
from .checks import BARRIER
from .distinct import distinct
from .dtypes import Array
from .geometry import WARP
from .meetings import named_by, strangers
from .memory import Memory
from .named_barriers import NamedBarriers
from .program import BARRIERS, MASK, Block, End, File, Program
from .shared_races import SharedRaces
from .turns import Turns

NOWHERE = -1
EVERYBODY = 0xFFFFFFFF  # the member mask of a whole warp


class Machine:
    """One batch of blocks on its way through a program."""

    def __init__(self, program: Program, file: File, memory: Memory, name: str) -> None:
        self.program, self.file, self.memory, self.name = program, file, memory, name
        self.geometry = memory.geometry
        # Runnable threads by the block they are at; a mask of None is all lanes.
        self.groups: dict[int, Array | None] = {0: self.geometry.running}
        # Threads at a meeting that others of their warp have not reached yet.
        self.parked: dict[int, Array] = {}
        self.living: Array | None = self.geometry.running
        self.waiting: Array | None = None  # bool[lanes]: at a barrier
        self.resume = np.zeros(0, np.int64)  # block after the barrier, for the waiting
        self.barriers = np.zeros(0, np.int64)  # its number
        self.named: NamedBarriers | None = None  # from the first barrier of some threads on
        self.turns = Turns(polling=program.polling)
        self.races = memory.races
        self.barriers_matter = BARRIER in memory.recorder.checks
        self.executed = 0  # instructions, each once for all threads it ran for

    def run(self, budget: int) -> None:
        """Run to the end of all threads.

        UnsupportedError after `budget` of them, or where threads wait for each other for ever.
        """
        file, blocks = self.file, self.program.blocks
        while self.groups or self._unpark():
            at, all_had_one = self.turns.next(self.groups)
            if all_had_one and self.parked:
                self._wake()
            mask = self.groups.pop(at)
            if at >= len(blocks):
                self._leave(mask)
                continue
            if not self.groups and not self.parked:
                self.turns.together()
                if self.waiting is None:
                    self._run_alone(at, mask, budget)
                    continue
            block = blocks[at]
            if block.members is not None and mask is not None:
                mask = self._together(at, block, mask)
                if mask is None:
                    continue
            if block.members is not None:
                self._met(block, block.members, mask)
            self._count(block, budget)
            file[MASK] = mask
            for op in block.slow:
                op(file)
            self._end(block.end, at, mask, alone=False)
        if self.waiting is not None:
            self._stuck()
        if self.races is not None:
            self.races.settle()

    def _run_alone(self, at: int, mask: Array | None, budget: int) -> None:
        """Run the only group there is, up to where its threads part or exit."""
        file, blocks = self.file, self.program.blocks
        file[MASK] = mask
        while at < len(blocks):
            block = blocks[at]
            if block.members is not None:
                self._met(block, block.members, mask)
            self._count(block, budget)
            for op in block.fast:
                op(file)
            end = block.end
            going = end.predicate is None
            if end.predicate is not None:
                taken = file[end.predicate]
                if taken.size == 1:
                    going = bool(taken[0])
                elif mask is None and np.logical_and.reduce(taken):
                    going = True
                elif mask is not None or np.logical_or.reduce(taken):
                    break
            if end.kind == "jump" and going:
                at = end.target
            elif end.kind in ("fall", "barrier", "jump") or not going:
                at += 1  # a barrier finds all living threads here
                if end.kind == "barrier" and going and self.races is not None:
                    self.races.passed()
            else:
                break
        else:
            self._leave(mask)
            return
        self._end(end, at, mask, alone=True)

    def _count(self, block: Block, budget: int) -> None:
        self.executed += block.length
        if self.executed > budget:
            raise UnsupportedError(
                f"the launch did not end within {budget} instructions", where=self.name
            )

    # --- ends of blocks ------------------------------------------------------------------------
    def _end(self, end: End, at: int, mask: Array | None, *, alone: bool) -> None:
        if end.kind == "fall":
            self._join(at + 1, mask)
            return
        if end.predicate is not None:
            taken = self.file[end.predicate]
            if taken.size == 1:
                if not taken[0]:
                    self._join(at + 1, mask)
                    return
            else:
                stay = ~taken if mask is None else mask & ~taken
                if np.logical_or.reduce(stay):
                    taken = taken if mask is None else mask & taken
                    self._join(at + 1, stay)
                    if not np.logical_or.reduce(taken):
                        return
                    mask, alone = taken, False
        if end.kind == "jump":
            self._join(end.target, mask)
        elif end.kind == "barrier":
            if alone:
                self._join(at + 1, mask)
                if self.races is not None:
                    self.races.passed()
            else:
                self._wait(mask, at + 1, end.barrier)
        elif end.kind in ("named", "arrive"):
            self._named(end, mask, at + 1)
        else:
            if end.kind == "trap":
                self._trap(end, mask)
            self._leave(mask)

    def _join(self, at: int, mask: Array | None) -> None:
        if at in self.groups:
            other = self.groups[at]
            mask = None if mask is None or other is None else mask | other
        self.groups[at] = mask

    def _leave(self, mask: Array | None) -> None:
        """Threads exit."""
        if mask is None:
            self.living = np.zeros(self.geometry.lanes, np.bool_)
        else:
            self.living = ~mask if self.living is None else self.living & ~mask
        self._release()

    def _trap(self, end: End, mask: Array | None) -> None:
        lanes = self.geometry.lane if mask is None else np.flatnonzero(mask)
        self.memory.recorder.trap(end.instruction.place, lanes, self.geometry)

    # --- barriers ------------------------------------------------------------------------------
    def _wait(self, mask: Array | None, resume: int, barrier: int) -> None:
        lanes = self.geometry.lanes
        if self.waiting is None:
            self.waiting = np.zeros(lanes, np.bool_)
            self.resume = np.full(lanes, NOWHERE)
            self.barriers = np.zeros(lanes, np.int64)
        chosen = slice(None) if mask is None else mask
        self.waiting[chosen] = True
        self.resume[chosen] = resume
        self.barriers[chosen] = barrier
        self._release()

    def _named(self, end: End, mask: Array | None, resume: int) -> None:
        """Threads come to barriers whose number or count they tell."""
        lanes = self.geometry.lanes
        if self.named is None:
            self.named = NamedBarriers(self.geometry)
        here = np.ones(lanes, np.bool_) if mask is None else mask
        numbers = np.broadcast_to(self.file[end.number], lanes)
        counts = np.broadcast_to(0 if end.count is None else self.file[end.count], lanes)
        if end.brings is not None:
            self.named.bring(here, self.file[end.brings])
        for number in distinct(numbers[here]):
            if not 0 <= number < BARRIERS:
                raise UnsupportedError(f"a barrier of number {number}", where=self.name)
            chosen = here & (numbers == number)
            waits = end.kind == "named"
            self.named.arrive(chosen, int(number), counts, waits=waits)
            if waits:
                self._wait(chosen, resume, int(number))
            else:
                self._join(resume, chosen)
                if self.races is not None:
                    self.races.arrived(chosen, int(number))
                self._release()

    def _gathered(self, races: SharedRaces, going: Array, alive: Array) -> None:
        """Tell who passed a barrier of some threads, or of all of their block."""
        shape = (self.geometry.count, self.geometry.padded)
        for number in distinct(self.barriers[going]):
            here = (going & (self.barriers == number)).reshape(shape)
            whole = here.any(1) & (here | ~alive.reshape(shape)).all(1)
            if whole.all():
                races.passed()
            elif whole.any():
                races.passed(whole)
            some = (here & ~whole[:, None]).reshape(-1)
            if some.any():
                races.gathered(some, int(number))

    def _go(self, going: Array) -> None:
        """Let waiting threads go on."""
        for at in distinct(self.resume[going]):
            self._join(int(at), going & (self.resume == at))
        if self.waiting is not None:
            self.waiting = self.waiting & ~going
            if not self.waiting.any():
                self.waiting = None

    def _release(self) -> None:
        """Let the blocks go on whose living threads all wait at one barrier."""
        if self.waiting is None:
            return
        if self.named is not None:
            living = self.living
            alive = np.ones(self.geometry.lanes, np.bool_) if living is None else living
            going = self.named.complete(self.waiting, self.barriers, alive)
            if going.any():
                if self.races is not None:
                    self._gathered(self.races, going, alive)
                if self.program.brought is not None:
                    slot = self.program.brought
                    self.file[slot] = self.named.collected(going, self.barriers, self.file[slot])
                self._go(going)
            return
        shape = (self.geometry.count, self.geometry.padded)
        waiting = self.waiting.reshape(shape)
        living = np.ones(shape, np.bool_) if self.living is None else self.living.reshape(shape)
        numbers = self.barriers.reshape(shape)
        least = np.where(waiting, numbers, 16).min(1)
        most = np.where(waiting, numbers, -1).max(1)
        complete = (waiting | ~living).all(1) & (least == most)
        if not complete.any():
            return
        going = (waiting & complete[:, None]).reshape(-1)
        if self.races is not None:
            self.races.passed(complete if not complete.all() else None)
        if self.barriers_matter:
            self._apart(going)
        self._go(going)

    def _apart(self, going: Array) -> None:
        """Threads of one warp pass an aligned barrier from different places: undefined."""
        shape = (-1, WARP)
        resume = self.resume.reshape(shape)
        least = np.where(going.reshape(shape), resume, len(self.program.blocks)).min(1)
        most = np.where(going.reshape(shape), resume, NOWHERE).max(1)
        if (least < most).any():
            self._diverged(going & np.repeat(least < most, WARP), aligned=True)

    def _stuck(self) -> None:
        """Threads wait for ever at different barriers."""
        if not self.barriers_matter:
            raise UnsupportedError("threads wait for ever at different barriers", where=self.name)
        self._diverged(self.waiting, aligned=False)
        self.waiting = None

    def _diverged(self, lanes: Array | None, *, aligned: bool) -> None:
        """Record that waiting threads are at barriers that part them."""
        for resume in distinct(self.resume[lanes]):
            barrier = self.program.blocks[int(resume) - 1].end.instruction
            if aligned and barrier.opcode == "barrier" and "aligned" not in barrier.modifiers:
                continue
            here = np.flatnonzero(lanes & (self.resume == resume))
            self.memory.recorder.diverged(barrier.place, here, self.geometry)

    # --- meetings ------------------------------------------------------------------------------
    def _together(self, at: int, block: Block, mask: Array) -> Array | None:
        """Of `mask`, the threads whose warp is complete; the others are parked."""
        members = self.file[block.members] if block.members is not None else np.zeros(1, np.uint32)
        shape = (-1, WARP)
        named = (members.view(np.uint32) >> (self.geometry.warp_lane.astype(np.uint32))) & 1
        here = mask.reshape(shape)
        wanted = named.astype(np.bool_).reshape(shape)
        if members.size > 1:  # a lane's mask counts only where that lane is
            wanted = named_by(members, here)
        missing = wanted & ~here
        if self.living is not None:
            missing = missing & self.living.reshape(shape)
        complete = here & ~missing.any(axis=1, keepdims=True)
        rest = (here & ~complete).reshape(-1)
        if rest.any():
            self.parked[at] = rest | self.parked[at] if at in self.parked else rest
        return complete.reshape(-1) if complete.any() else None

    def _met(self, block: Block, members_at: int, mask: Array | None) -> None:
        """Threads `mask` (None: all) begin a block with a meeting."""
        members = self.file[members_at]
        if members.size == 1:
            named = int(members[0]) & EVERYBODY
            if named == 0:
                return  # activemask, which orders nothing
            if named == EVERYBODY:
                if self.races is not None:
                    if self.geometry.padded == WARP and self._everybody(mask):
                        self.races.passed()  # all threads of each block
                    else:
                        self.races.meet(mask, members)
                return
        if self.races is not None:
            self.races.meet(mask, members)
        if self.barriers_matter:
            unnamed = strangers(members, mask, self.geometry)
            if unnamed.size:
                self.memory.recorder.diverged(block.first.place, unnamed, self.geometry)

    def _everybody(self, mask: Array | None) -> bool:
        """Whether `mask` is all living threads."""
        if mask is None or self.living is None:
            return mask is None
        return mask is self.living or not np.logical_or.reduce(mask ^ self.living)

    def _unpark(self) -> bool:
        """Nothing can run: let those go on whose warp has become complete. False: all ended."""
        if not self.parked:
            return False
        if self._wake():
            return True
        if self.barriers_matter:
            never, self.parked = self.parked, {}
            for at, mask in never.items():
                first = self.program.blocks[at].first
                self.memory.recorder.diverged(first.place, np.flatnonzero(mask), self.geometry)
                self._leave(mask)
            return bool(self.groups)
        first = self.program.blocks[min(self.parked)].first
        raise UnsupportedError(
            f"{first.spelling}: threads that its member mask names never get there",
            where=f"{self.name}, PTX line {first.line}",
        )

    def _wake(self) -> bool:
        """Let those at a meeting go on whose warp has become complete; whether there were any."""
        parked, self.parked = self.parked, {}
        progress = False
        for at in sorted(parked):
            complete = self._together(at, self.program.blocks[at], parked[at])
            if complete is not None:
                self._join(at, complete)
                progress = True
        return progress
