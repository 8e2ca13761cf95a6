"""In which threads of which blocks something holds: for each lane, blocks along an axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..dtypes import Array
from ..geometry import Triple
from .value import NOWHERE, Value, lanes

Range = tuple[Array, Array]  # int64, first and end along an axis, for each lane or for all


@dataclass(frozen=True, slots=True, eq=False)
class Where:
    """lanes: bool[lanes] or [1], None: all. ranges: for x, y, z; None: all blocks along it."""

    lanes: Array | None = None
    ranges: tuple[Range | None, Range | None, Range | None] = (None, None, None)

    @property
    def everywhere(self) -> bool:
        return self.lanes is None and self.ranges == (None, None, None)


EVERYWHERE = Where()
NOBODY = Where(np.zeros(1, np.bool_))


def both(one: Where, two: Where) -> Where:
    if one.everywhere or one is two:
        return two
    if two.everywhere:
        return one
    if one.lanes is None or two.lanes is None:
        mask = two.lanes if one.lanes is None else one.lanes
    else:
        mask = one.lanes & two.lanes
    x, y, z = map(_common, one.ranges, two.ranges)
    return Where(mask, (x, y, z))


def _common(one: Range | None, two: Range | None) -> Range | None:
    if one is None or two is None:
        return two if one is None else one
    return np.maximum(one[0], two[0]), np.minimum(one[1], two[1])


def nowhere(where: Where) -> bool:
    """Whether no thread is meant."""
    found = live(where)
    return found is not None and not found.any()


def acting(where: Where, grid: Triple, lanes: int) -> tuple[Array, list[Range]]:
    """The numbers of the lanes for which there is a block, of `lanes`, and for each of them the
    first and the end along x, y and z."""
    alive = live(where)
    every = np.ones(lanes, np.bool_) if alive is None else np.broadcast_to(alive, (lanes,))
    chosen = every.nonzero()[0]
    found: list[Range] = []
    for axis, size in enumerate(grid):
        pair = where.ranges[axis] or (np.zeros(1, np.int64), np.full(1, size))
        first, end = (e if e.size == 1 else e[chosen] for e in pair)
        found.append((np.broadcast_to(first, chosen.shape), np.broadcast_to(end, chosen.shape)))
    return chosen, found


def live(where: Where) -> Array | None:
    """bool: the lanes for which there is a block; None: all."""
    found = where.lanes
    for pair in where.ranges:
        if pair is not None:
            some = pair[0] < pair[1]
            found = some if found is None else found & some
    return found


def without(where: Where, grid: Triple) -> Where | None:
    """The others; None where they have no such form."""
    bounded = [axis for axis in range(3) if where.ranges[axis] is not None]
    if not bounded:
        return NOBODY if where.lanes is None else Where(~where.lanes)
    pair = where.ranges[bounded[0]]
    if len(bounded) > 1 or where.lanes is not None or pair is None:
        return None
    first, end = pair
    size = grid[bounded[0]]
    nothing = first >= end
    if (nothing | (first <= 0)).all():  # [0, end): what is left is [end, size)
        kept = (np.where(nothing, 0, end), np.full(1, size))
    elif (nothing | (end >= size)).all():
        kept = (np.zeros(1, np.int64), np.where(nothing, size, first))
    else:
        return None
    return _along(bounded[0], kept)


def either(one: Where, two: Where, grid: Triple) -> Where | None:
    """Those of both; None where they have no such form."""
    if nowhere(one):
        return two
    if nowhere(two):
        return one
    differ = [n for n in range(3) if not _same(one.ranges[n], two.ranges[n])]
    if not differ:
        if one.lanes is None or two.lanes is None:
            return Where(None, one.ranges)
        mask = one.lanes | two.lanes
        return Where(None if mask.all() else mask, one.ranges)
    first, second = one.ranges[differ[0]], two.ranges[differ[0]]
    alike = one.lanes is two.lanes or (
        one.lanes is not None and two.lanes is not None and np.array_equal(one.lanes, two.lanes)
    )
    if len(differ) > 1 or not alike or first is None or second is None:
        return None
    meets = (first[1] == second[0]) | (second[1] == first[0])
    # a lane that one of them has nothing of is where the other is
    empty, other = first[0] >= first[1], second[0] >= second[1]
    if not (meets | empty | other).all():
        return None
    low = np.where(empty, second[0], np.where(other, first[0], np.minimum(first[0], second[0])))
    high = np.where(empty, second[1], np.where(other, first[1], np.maximum(first[1], second[1])))
    whole = bool((low <= 0).all() and (high >= grid[differ[0]]).all())
    ranges = list(one.ranges)
    ranges[differ[0]] = None if whole else (low, high)
    return Where(one.lanes, (ranges[0], ranges[1], ranges[2]))


def _same(one: Range | None, two: Range | None) -> bool:
    if one is None or two is None:
        return one is two
    return np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])


def _along(axis: int, pair: Range) -> Where:
    ranges: list[Range | None] = [None, None, None]
    ranges[axis] = pair
    return Where(None, (ranges[0], ranges[1], ranges[2]))


def below(value: Value, limit: int, grid: Triple) -> Where | None:
    """Where value < limit; None where that depends on blocks along several axes."""
    if value.high < limit:
        return EVERYWHERE
    if value.low >= limit:
        return NOBODY
    if value.by == NOWHERE:
        return Where(lanes(value) < limit)
    moving = [axis for axis in range(3) if value.by[axis]]
    if len(moving) > 1:
        return None
    axis, size = moving[0], grid[moving[0]]
    step, room = value.by[axis], limit - lanes(value)  # step · c < room
    if step > 0:
        end = np.minimum(np.maximum(-(-room // step), 0), size)
        return _along(axis, (np.zeros(1, np.int64), end))
    first = np.minimum(np.maximum(room // step + 1, 0), size)  # c > room / step
    return _along(axis, (first, np.full(1, size)))
