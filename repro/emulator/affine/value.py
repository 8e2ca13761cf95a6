"""What a register holds in all threads of a launch: base + at[lane] + by · (ctaid.x, .y, .z).

A value is kept as the number that its bits mean when they are signed, and only where no thread of
no block leaves that range: then the arithmetic of integers is that of the registers. Functions
return None for everything else, and what is made from None is None.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..dtypes import Array
from ..geometry import Triple

NOWHERE: Triple = (0, 0, 0)  # the multiples of what is the same in every block
SIGNED_MAX = {4: (1 << 31) - 1, 8: (1 << 63) - 1}


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """at: int64[lanes of a block], None: the same in all. low, high: no thread is beyond them."""

    base: int
    at: Array | None
    by: Triple
    low: int
    high: int

    @property
    def constant(self) -> bool:
        """Whether it is one number for all threads."""
        return self.at is None and self.by == NOWHERE


def constant(number: int) -> Value:
    return Value(number, None, NOWHERE, number, number)


def wrapped(number: int, size: int) -> int:
    """`number` as `size` bytes hold it, signed."""
    half = 1 << (8 * size - 1)
    return ((number + half) & (2 * half - 1)) - half


def of_lanes(at: Array) -> Value:
    """What differs between the threads of a block, and not between blocks."""
    low, high = int(at.min()), int(at.max())
    return constant(low) if low == high else Value(0, at, NOWHERE, low, high)


def of_blocks(axis: int, grid: Triple) -> Value:
    """ctaid along an axis."""
    if grid[axis] == 1:
        return constant(0)
    x, y, z = (int(n == axis) for n in range(3))
    return Value(0, None, (x, y, z), 0, grid[axis] - 1)


def kept(value: Value, size: int) -> Value | None:
    """`value` where `size` bytes hold it in every thread."""
    most = SIGNED_MAX[size]
    if -most - 1 <= value.low and value.high <= most:
        return value
    return constant(wrapped(value.base, size)) if value.constant else None


def plus(one: Value, two: Value, size: int) -> Value | None:
    at = two.at if one.at is None else one.at if two.at is None else one.at + two.at
    x, y, z = map(operator.add, one.by, two.by)
    low, high = one.low + two.low, one.high + two.high
    return kept(Value(one.base + two.base, at, (x, y, z), low, high), size)


def times(one: Value, two: Value, size: int) -> Value | None:
    """None unless one of them is the same in all threads."""
    if not two.constant:
        one, two = two, one
    if not two.constant:
        if one.by == two.by == NOWHERE:
            return kept(of_lanes(lanes(one) * lanes(two)), size) if _small(one, two) else None
        return None
    factor = two.base
    if abs(factor) > 1 << 40:
        return kept(constant(one.base * factor), size) if one.constant else None
    ends = sorted((one.low * factor, one.high * factor))
    x, y, z = (factor * n for n in one.by)
    at = None if one.at is None or not factor else one.at * factor
    return kept(Value(one.base * factor, at, (x, y, z), ends[0], ends[1]), size)


def _small(one: Value, two: Value) -> bool:
    """Whether int64 holds their product."""
    return max(-one.low, one.high) * max(-two.low, two.high) < 1 << 62


def minus(one: Value, two: Value, size: int) -> Value | None:
    negative = times(two, constant(-1), 8)
    return None if negative is None else plus(one, negative, size)


def lanes(value: Value) -> Array:
    """int64: a value that is the same in every block, lane by lane or one for all."""
    if value.at is None:
        return np.array([value.base])
    return value.at + value.base if value.base else value.at


def grain(value: Value) -> int:
    """How many low bits are the same in every block."""
    union = value.by[0] | value.by[1] | value.by[2]
    return 62 if not union else (union & -union).bit_length() - 1


def shifted_left(one: Value, two: Value, size: int) -> Value | None:
    if not two.constant or not 0 <= two.base < 8 * size:
        return None
    return times(one, constant(1 << two.base), size)


def shifted_right(one: Value, two: Value, size: int) -> Value | None:
    """Of signed numbers, or of those that are not negative."""
    if not two.constant or not 0 <= two.base < 8 * size or grain(one) < two.base:
        return None
    return _divided(one, 1 << two.base)


def quotient(one: Value, two: Value, size: int) -> Value | None:
    if not two.constant or two.base <= 0 or one.low < 0 or any(n % two.base for n in one.by):
        return None
    return _divided(one, two.base)


def _divided(one: Value, by: int) -> Value:
    x, y, z = (n // by for n in one.by)
    low, high = one.low // by, one.high // by
    if one.at is None:
        return Value(one.base // by, None, (x, y, z), low, high)
    return Value(0, lanes(one) // by, (x, y, z), low, high)


def remainder(one: Value, two: Value, size: int) -> Value | None:
    if not two.constant or two.base <= 0 or one.low < 0 or any(n % two.base for n in one.by):
        return None
    return _concrete(lanes(one) % two.base)


def conjunction(one: Value, two: Value, size: int) -> Value | None:
    """Bit by bit, as the two below: where at most the high bits differ between blocks."""
    if one.by == two.by == NOWHERE:
        return _concrete(lanes(one) & lanes(two))
    if two.by != NOWHERE:
        one, two = two, one
    if two.by != NOWHERE:
        return None
    bits = grain(one)
    if two.low >= 0 and two.high < 1 << bits:
        return _concrete(lanes(one) & lanes(two))
    if (
        two.constant
        and two.base < 0
        and -two.base & (-two.base - 1) == 0
        and -two.base <= 1 << bits
    ):
        at = lanes(one) & two.base
        return _moved(one, at, one.low + two.base + 1, one.high)
    return None


def disjunction(one: Value, two: Value, size: int) -> Value | None:
    return _low_bits(one, two, np.bitwise_or)


def difference(one: Value, two: Value, size: int) -> Value | None:
    return _low_bits(one, two, np.bitwise_xor)


def _low_bits(one: Value, two: Value, do: Callable[[Array, Array], Array]) -> Value | None:
    if one.by == two.by == NOWHERE:
        return _concrete(do(lanes(one), lanes(two)))
    if two.by != NOWHERE:
        one, two = two, one
    bits = grain(one)
    if two.by != NOWHERE or two.low < 0 or two.high >= 1 << bits:
        return None
    most = (1 << bits) - 1
    return _moved(one, do(lanes(one), lanes(two)), one.low - most, one.high + most)


def _moved(one: Value, at: Array, low: int, high: int) -> Value:
    """`one` with `at` for what is the same in every block."""
    if at.size == 1:
        return Value(int(at[0]), None, one.by, low, high)
    return Value(0, at, one.by, low, high)


def _concrete(at: Array) -> Value:
    return constant(int(at[0])) if at.size == 1 else of_lanes(at)


def least(one: Value, two: Value, size: int) -> Value | None:
    return _chosen(one, two, np.minimum)


def greatest(one: Value, two: Value, size: int) -> Value | None:
    return _chosen(one, two, np.maximum)


def _chosen(one: Value, two: Value, do: Callable[[Array, Array], Array]) -> Value | None:
    if one.by == two.by == NOWHERE:
        return _concrete(do(lanes(one), lanes(two)))
    if one.high <= two.low:
        return one if do is np.minimum else two
    if two.high <= one.low:
        return two if do is np.minimum else one
    return None
