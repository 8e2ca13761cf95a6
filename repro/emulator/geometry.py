"""Which thread each lane of a batch is.

A batch is some blocks of a launch, executed together. Its lanes are the threads of its blocks, each
block rounded up to whole warps; the lanes too many never run.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np

from .dtypes import SIGNED, UNSIGNED, Array

WARP = 32
MULTIPROCESSORS = 108  # that blocks are said to run on in turn; an A100 has as many
CACHED_LANES = 4096  # geometries of small batches are kept: a scenario launches them by the hundred

Triple = tuple[int, int, int]


class Geometry:
    """Blocks first .. first + count - 1 of a grid. All arrays have one value a lane, or one."""

    def __init__(self, first: int, count: int, block: Triple, grid: Triple) -> None:
        self.first, self.count, self.block, self.grid = first, count, block, grid
        self.threads = block[0] * block[1] * block[2]
        self.padded = -(-self.threads // WARP) * WARP
        self.lanes = count * self.padded
        self.specials: dict[str, Array] = {}
        # Sources of the shuffles with literal arguments, by mode and arguments.
        self.shuffles: dict[tuple[str, int, int] | None, tuple[Array, Array]] = {}

    def at(self, first: int) -> Geometry:
        """As many blocks from `first` on; what does not depend on `first` is the same."""
        found = Geometry(first, self.count, self.block, self.grid)
        found.shuffles = self.shuffles
        found.specials = {
            name: values
            for name, values in self.specials.items()
            if "ctaid" not in name and name != "%smid"
        }
        for name in _SHARED & self.__dict__.keys():
            found.__dict__[name] = self.__dict__[name]
        return found

    @cached_property
    def lane(self) -> Array:
        """int64[lanes]: 0, 1, 2..."""
        return np.arange(self.lanes)

    @cached_property
    def thread(self) -> Array:
        """int64[lanes]: number of the thread in its block."""
        return np.tile(np.arange(self.padded), self.count)

    @cached_property
    def row(self) -> Array:
        """int64[lanes], int64[1] for one block: number of the block in the batch."""
        if self.count == 1:
            return np.zeros(1, np.int64)
        return np.repeat(np.arange(self.count), self.padded)

    @cached_property
    def warp_lane(self) -> Array:
        """int64[lanes]: number of the thread in its warp."""
        return self.lane % WARP

    @cached_property
    def running(self) -> Array | None:
        """bool[lanes]: the lanes that are threads; None: all."""
        return None if self.padded == self.threads else self.thread < self.threads

    @cached_property
    def column(self) -> Array:
        """int64[lanes] or [1]: ctaid.x."""
        return (self.row + self.first) % self.grid[0]

    def special(self, name: str, dynamic: int, total: int) -> Array:
        """int32: the value of a special register. dynamic, total: bytes of shared memory."""
        if name == "%dynamic_smem_size":
            return np.array([dynamic], np.int32)
        if name == "%total_smem_size":
            return np.array([total], np.int32)
        if name not in self.specials:
            self.specials[name] = np.ascontiguousarray(self._special(name), np.int32)
        return self.specials[name]

    def _special(self, name: str) -> Array:
        base, _, axis = name.partition(".")
        across, down, _ = self.block if base in ("%tid", "%ntid") else self.grid
        if base in ("%tid", "%ctaid"):
            number = self.thread if base == "%tid" else self.row + self.first
            if axis == "x":
                return number % across
            return number // across % down if axis == "y" else number // (across * down)
        if base in ("%ntid", "%nctaid"):
            return np.array([(self.block if base == "%ntid" else self.grid)["xyz".index(axis)]])
        lane = self.warp_lane
        one = np.uint64(1) << lane.astype(UNSIGNED[8])
        below = one - np.uint64(1)
        values = {
            "%laneid": lane,
            "%warpid": self.thread // WARP,
            "%nwarpid": np.array([self.padded // WARP]),
            "%smid": (self.row + self.first) % MULTIPROCESSORS,
            "%nsmid": np.array([MULTIPROCESSORS]),
            "%lanemask_eq": one,
            "%lanemask_lt": below,
            "%lanemask_le": below | one,
            "%lanemask_gt": ~(below | one),
            "%lanemask_ge": ~below,
        }
        return values[name].astype(UNSIGNED[4]).view(SIGNED[4])

    def place(self, identity: int) -> tuple[Triple, Triple]:
        """ctaid and tid of a thread named by `identities`."""
        block, thread = divmod(identity, self.threads)
        return _unravel(block, self.grid), _unravel(thread, self.block)

    def identities(self, lanes: Array) -> Array:
        """int64: a number for each of the threads in `lanes`, unique and ordered in the launch."""
        begin = self.first * self.threads
        if self.padded == self.threads:
            return lanes + begin
        idle = self.padded - self.threads  # lanes of a block
        found: Array = lanes - lanes // self.padded * idle + begin
        return found


# Properties of a Geometry that do not depend on its first block.
_SHARED = frozenset({"lane", "thread", "row", "warp_lane", "running"})


def _unravel(number: int, shape: Triple) -> Triple:
    return number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])


_cached = lru_cache(maxsize=128)(Geometry)


def geometry(
    first: int, count: int, block: Triple, grid: Triple, before: Geometry | None = None
) -> Geometry:
    """A Geometry, the same one again for small batches. before: that of the batch before it."""
    if count * block[0] * block[1] * block[2] <= CACHED_LANES:
        return _cached(first, count, block, grid)
    if before is not None and before.count == count:
        return before.at(first)
    return Geometry(first, count, block, grid)
