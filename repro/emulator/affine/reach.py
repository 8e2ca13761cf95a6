"""How far accesses go, over all threads that make them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..dtypes import Array
from ..geometry import Triple
from .value import NOWHERE, Value
from .where import Where, live


class Reach(NamedTuple):
    """Of the part of addresses that differs, at + by · block.

    first, last: the least and the greatest where it is done. bits: all bits of `at` together.
    """

    first: int
    last: int
    bits: int
    address: Value
    where: Where


class Reaches:
    """The reaches of one launch. Accesses to one place after the other have theirs in common."""

    def __init__(self, grid: Triple) -> None:
        self.grid = grid
        self.found: dict[tuple[int, Triple, int], Reach | None] = {}
        self.kept: list[Value | Where] = []  # so that no identity is used twice

    def of(self, address: Value, where: Where) -> Reach | None:
        """None where nobody is."""
        key = (id(address.at), address.by, id(where))
        if key not in self.found:
            self.found[key] = _reach(address, where, self.grid)
            self.kept += [address, where]
        return self.found[key]


def _reach(address: Value, where: Where, grid: Triple) -> Reach | None:
    alive = live(where)
    first, last = _ends_of_lanes(address, where, grid)
    if alive is not None and alive.size == 1:
        if not alive[0]:
            return None
    elif alive is not None:
        if first.size == last.size == 1:
            if not alive.any():
                return None
        else:
            shape = alive.shape
            first, last = np.broadcast_to(first, shape)[alive], np.broadcast_to(last, shape)[alive]
            if not first.size:
                return None
    bits = 0 if address.at is None else int(np.bitwise_or.reduce(address.at))
    return Reach(int(first.min()), int(last.max()), bits, address, where)


def _ends_of_lanes(address: Value, where: Where, grid: Triple) -> tuple[Array, Array]:
    """The same for each lane or for all; anything for lanes that are nowhere."""
    at = np.zeros(1, np.int64) if address.at is None else address.at
    first = last = at
    if address.by != NOWHERE:
        for axis, step in enumerate(address.by):
            pair = where.ranges[axis]
            if step and pair is None:
                ends = sorted((0, step * (grid[axis] - 1)))
                first, last = first + ends[0], last + ends[1]
            elif step and pair is not None:
                low, high = step * pair[0], step * (pair[1] - 1)
                if step < 0:
                    low, high = high, low
                first, last = first + low, last + high
    return first, last
