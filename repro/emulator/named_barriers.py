"""Barriers of some threads of a block: `bar.sync a, b`, `bar.arrive a, b`.

A device counts warps: one that has come counts for 32 threads, whatever of it has exited.
"""

from __future__ import annotations

import numpy as np

from .dtypes import Array
from .geometry import WARP, Geometry
from .program import BARRIERS


class NamedBarriers:
    """Who has come to which barrier, of each block of a batch."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        shape = (geometry.count, BARRIERS)
        self.wanted = np.zeros(shape, np.int64)  # threads; 0: all of the block
        self.arrived = np.zeros(shape, np.int64)  # without waiting

    def arrive(self, mask: Array, number: int, counts: Array, *, waits: bool) -> None:
        """Threads `mask` come to barrier `number` of counts[lanes] threads."""
        rows = (self.geometry.count, self.geometry.padded)
        here = mask.reshape(rows)
        some = here.any(1)
        wanted = np.where(here, counts.reshape(rows), 0).max(1)
        self.wanted[:, number] = np.where(some, wanted, self.wanted[:, number])
        if not waits:
            self.arrived[:, number] += self._threads(here)

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
