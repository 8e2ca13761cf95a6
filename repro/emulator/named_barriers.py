"""Barriers of some threads of a block: `bar.sync a, b`, `bar.arrive a, b`.

A device counts warps: one that has come counts for 32 threads, whatever of it has exited.
"""

from __future__ import annotations

import numpy as np

from .distinct import distinct
from .dtypes import Array
from .geometry import WARP, Geometry
from .program import BARRIERS

# What a lane learns from the barrier it passed: of the predicates that were brought there.
COLLECTED = np.dtype([("popc", np.uint32), ("and", np.bool_), ("or", np.bool_)])


class NamedBarriers:
    """Who has come to which barrier, of each block of a batch."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        shape = (geometry.count, BARRIERS)
        self.wanted = np.zeros(shape, np.int64)  # threads; 0: all of the block
        self.arrived = np.zeros(shape, np.int64)  # without waiting
        self.brought = np.zeros(geometry.lanes, np.bool_)

    def arrive(self, mask: Array, number: int, counts: Array, *, waits: bool) -> None:
        """Threads `mask` come to barrier `number` of counts[lanes] threads."""
        rows = (self.geometry.count, self.geometry.padded)
        here = mask.reshape(rows)
        some = here.any(1)
        wanted = np.where(here, counts.reshape(rows), 0).max(1)
        self.wanted[:, number] = np.where(some, wanted, self.wanted[:, number])
        if not waits:
            self.arrived[:, number] += self._threads(here)

    def bring(self, mask: Array, values: Array) -> None:
        """Threads `mask` bring values[lanes] to the barrier that they come to."""
        self.brought = np.where(mask, values, self.brought)

    def collected(self, going: Array, numbers: Array, before: Array) -> Array:
        """COLLECTED[lanes]: of those that pass now what each barrier collected; else as `before`.

        going: bool[lanes], numbers: that of the barrier each waits at.
        """
        rows = (self.geometry.count, self.geometry.padded)
        found = np.broadcast_to(before, self.geometry.lanes).copy()
        for number in distinct(numbers[going]):
            here = (going & (numbers == number)).reshape(rows)
            values = self.brought.reshape(rows)
            told = np.zeros(rows, COLLECTED)
            told["popc"] = (values & here).sum(1, dtype=np.uint32)[:, None]
            told["and"] = (values | ~here).all(1)[:, None]
            told["or"] = (values & here).any(1)[:, None]
            found[here.reshape(-1)] = told[here]
        return found

    def complete(self, waiting: Array, numbers: Array, living: Array) -> Array:
        """bool[lanes]: of those that wait, the ones whose barrier is complete; it begins anew."""
        rows = (self.geometry.count, self.geometry.padded)
        alive = living.reshape(rows)
        going = np.zeros(rows, np.bool_)
        for number in range(BARRIERS):
            here = (waiting & (numbers == number)).reshape(rows)
            wanted = self.wanted[:, number]
            everybody = here.any(1) & (here | ~alive).all(1)
            counted = self._threads(here, alive) + self.arrived[:, number] >= wanted
            full = np.where(wanted > 0, counted, everybody)
            going |= here & full[:, None]
            self.wanted[full, number] = 0
            self.arrived[full, number] = 0
        return going.reshape(-1)

    @staticmethod
    def _threads(here: Array, alive: Array | None = None) -> Array:
        """int64[blocks]: threads that count, of warps of which all living threads have come."""
        warps = here.reshape(len(here), -1, WARP)
        come = warps.any(2)
        if alive is not None:
            come = come & (warps | ~alive.reshape(warps.shape)).all(2)
        result: Array = come.sum(1) * WARP
        return result
