"""Whether the blocks of a launch keep out of each other's way in global memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..sites import RACES
from .reach import Reach, Reaches


class Footprint(NamedTuple):
    """What is touched: `width` bytes at base + at + by · block, where `reach` says."""

    manner: str
    base: int
    width: int
    reach: Reach


def apart(prints: Sequence[Footprint], reaches: Reaches) -> bool:
    """Whether no block touches what another one writes, but atomically where it does too.

    prints: of one buffer.
    """
    manners = {each.manner for each in prints}
    if not any(other in manners for manner in manners for other in RACES[manner]):
        return True
    moves = {each.reach.address.by for each in prints}
    if len(moves) > 1:
        return False
    # Of two blocks the farthest axis along which they differ parts them, if one step along it is no
    # less than all that is touched along the nearer ones.
    (by,) = moves
    axes = [axis for axis in range(3) if reaches.grid[axis] > 1]
    axes.sort(key=lambda axis: abs(by[axis]))
    return all(
        abs(by[axis]) >= _extent(prints, axes[:nearer], reaches) for nearer, axis in enumerate(axes)
    )


def _extent(prints: Sequence[Footprint], axes: Sequence[int], reaches: Reaches) -> int:
    """Bytes from the first to the last that blocks touch which differ along `axes` alone."""
    firsts, lasts = [], []
    for each in prints:
        x, y, z = (n if axis in axes else 0 for axis, n in enumerate(each.reach.address.by))
        reach = reaches.of(replace(each.reach.address, by=(x, y, z)), each.reach.where)
        if reach is not None:
            firsts.append(each.base + reach.first)
            lasts.append(each.base + reach.last + each.width)
    return max(lasts, default=0) - min(firsts, default=0)
