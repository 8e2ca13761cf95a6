"""Scheduling: which threads run which block next.

Threads that are at the same block run it together. When they part, those at the least block run
first, so that they meet again where their ways join. A barrier holds threads until all living
threads of their own block have arrived; exited threads count as arrived.
"""

from __future__ import annotations

import numpy as np

from ..errors import UnsupportedError
from .dtypes import Array
from .geometry import WARP
from .memory import Memory
from .program import MASK, Block, End, File, Program

NOWHERE = -1


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
        self.executed = 0  # instructions, each once for all threads it ran for

    def run(self, budget: int) -> None:
        """Run to the end of all threads.

        UnsupportedError after `budget` of them, or where threads wait for each other for ever.
        """
        file, blocks = self.file, self.program.blocks
        while self.groups or self._unpark():
            at = min(self.groups)
            mask = self.groups.pop(at)
            if at >= len(blocks):
                self._leave(mask)
                continue
            if not self.groups and not self.parked and self.waiting is None:
                self._run_alone(at, mask, budget)
                continue
            block = blocks[at]
            if block.members is not None and mask is not None:
                mask = self._together(at, block, mask)
                if mask is None:
                    continue
            self._count(block, budget)
            file[MASK] = mask
            for op in block.slow:
                op(file)
            self._end(block.end, at, mask, alone=False)
        if self.waiting is not None:
            raise UnsupportedError("threads wait for ever at different barriers", where=self.name)

    def _run_alone(self, at: int, mask: Array | None, budget: int) -> None:
        """Run the only group there is, up to where its threads part or exit."""
        file, blocks = self.file, self.program.blocks
        file[MASK] = mask
        while at < len(blocks):
            block = blocks[at]
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
            else:
                self._wait(mask, at + 1, end.barrier)
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

    def _release(self) -> None:
        """Let the blocks go on whose living threads all wait at one barrier."""
        if self.waiting is None:
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
        for at in np.unique(self.resume[going]):
            self._join(int(at), going & (self.resume == at))
        self.waiting = self.waiting & ~going
        if not self.waiting.any():
            self.waiting = None

    # --- meetings ------------------------------------------------------------------------------
    def _together(self, at: int, block: Block, mask: Array) -> Array | None:
        """Of `mask`, the threads whose warp is complete; the others are parked."""
        members = self.file[block.members] if block.members is not None else np.zeros(1, np.uint32)
        shape = (-1, WARP)
        named = (members.view(np.uint32) >> (self.geometry.warp_lane.astype(np.uint32))) & 1
        here = mask.reshape(shape)
        wanted = named.astype(np.bool_).reshape(shape)
        if members.size > 1:  # a lane's mask counts only where that lane is
            wanted = self._named_by(members, here)
        missing = wanted & ~here
        if self.living is not None:
            missing = missing & self.living.reshape(shape)
        complete = here & ~missing.any(axis=1, keepdims=True)
        rest = (here & ~complete).reshape(-1)
        if rest.any():
            self.parked[at] = rest | self.parked[at] if at in self.parked else rest
        return complete.reshape(-1) if complete.any() else None

    def _named_by(self, members: Array, here: Array) -> Array:
        """bool[warps, 32]: lanes that some present lane's member mask names."""
        bits = np.where(here, members.view(np.uint32).reshape(here.shape), 0)
        union = np.bitwise_or.reduce(bits, axis=1)
        result: Array = ((union[:, None] >> np.arange(WARP, dtype=np.uint32)) & 1).astype(np.bool_)
        return result

    def _unpark(self) -> bool:
        """Nothing can run: let those go on whose warp has become complete. False: all ended."""
        if not self.parked:
            return False
        parked, self.parked = self.parked, {}
        progress = False
        for at in sorted(parked):
            block = self.program.blocks[at]
            complete = self._together(at, block, parked[at])
            if complete is not None:
                self._join(at, complete)
                progress = True
        if not progress:
            first = self.program.blocks[min(parked)].first
            raise UnsupportedError(
                f"{first.spelling}: threads that its member mask names never get there",
                where=f"{self.name}, PTX line {first.line}",
            )
        return True
