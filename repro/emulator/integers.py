"""Integer operations that numpy lacks or does otherwise."""

from __future__ import annotations

import numpy as np

from .dtypes import Array, DType, signed, unsigned

_MASK32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def divide(a: Array, b: Array) -> Array:
    """Quotient towards zero. By zero: all bits set, which is what devices give."""
    dtype = a.dtype
    if dtype.itemsize < 8:
        # Exact: float64 holds both, and a quotient is further from the next integer than it errs.
        quotient = np.trunc(np.divide(a, b, dtype=np.float64))
        divisible = np.not_equal(b, 0)
        if not np.logical_and.reduce(divisible):
            quotient = np.where(divisible, quotient, -1.0)
        return quotient.astype(np.int64).astype(dtype)
    zero = b == 0
    divisor = np.where(zero, dtype.type(1), b)
    result = a // divisor
    if dtype.kind == "i":
        result = result + ((result * divisor != a) & ((a < 0) != (divisor < 0)))
    return np.where(zero, np.invert(dtype.type(0)), result)


def remainder(a: Array, b: Array) -> Array:
    """Remainder with the sign of `a`. By zero: `a`."""
    zero = b == 0
    divisor = np.where(zero, a.dtype.type(1), b)
    if a.dtype.kind == "i":  # the least integer by -1 would trap in some builds of numpy
        divisor = np.where(divisor == -1, a.dtype.type(1), divisor)
    return np.where(zero, a, np.fmod(a, divisor))


def multiply_high(a: Array, b: Array) -> Array:
    """Upper half of the product."""
    dtype = a.dtype
    size = dtype.itemsize
    if size < 8:
        wide: DType = np.dtype(f"{dtype.kind}{2 * size}")
        product = np.multiply(a, b, dtype=wide)
        upper: Array = np.right_shift(product, wide.type(8 * size)).astype(dtype)
        return upper
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & _MASK32, x >> _32, y & _MASK32, y >> _32
    low, middle, other = x0 * y0, x1 * y0, x0 * y1
    carry = ((low >> _32) + (middle & _MASK32) + (other & _MASK32)) >> _32
    high = x1 * y1 + (middle >> _32) + (other >> _32) + carry
    if dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
    result: Array = high.view(dtype)
    return result


def shift_left(a: Array, amount: Array) -> Array:
    """a << amount (uint32); amounts of the width and more give 0."""
    return _shift(np.left_shift, a, amount)


def shift_right(a: Array, amount: Array) -> Array:
    """a >> amount (uint32), filled with the sign of a signed a."""
    if a.dtype.kind == "i":
        most = np.uint32(8 * a.dtype.itemsize - 1)
        result: Array = a >> np.minimum(amount, most).astype(a.dtype)
        return result
    return _shift(np.right_shift, a, amount)


def _shift(function: np.ufunc, a: Array, amount: Array) -> Array:
    bits = 8 * a.dtype.itemsize
    inside = amount < bits
    shifted: Array = function(a, np.minimum(amount, np.uint32(bits - 1)).astype(a.dtype))
    if np.logical_and.reduce(inside):
        return shifted
    return np.where(inside, shifted, a.dtype.type(0))


def ones(count: Array, dtype: DType) -> Array:
    """The lowest `count` (uint32) bits set, of unsigned dtype."""
    all_ones = np.full(1, -1, signed(dtype)).view(dtype)
    bits = 8 * dtype.itemsize
    left = np.uint32(bits) - np.minimum(count, np.uint32(bits))
    return shift_right(all_ones, left)


def extract(a: Array, position: Array, length: Array) -> Array:
    """bfe: `length` bits of a from `position` on (both uint32, low 8 bits count)."""
    bits = 8 * a.dtype.itemsize
    position, length = position & np.uint32(255), length & np.uint32(255)
    if a.dtype.kind == "u":
        return shift_right(a, position) & ones(length, a.dtype)
    end = np.minimum(position + length, np.uint32(bits))
    left = np.uint32(bits) - end
    moved = shift_left(a.view(unsigned(a.dtype)), left).view(a.dtype)
    return np.where(length == 0, a.dtype.type(0), shift_right(moved, left + position))


def insert(a: Array, b: Array, position: Array, length: Array) -> Array:
    """bfi: b with `length` bits of a put at `position`."""
    position, length = position & np.uint32(255), length & np.uint32(255)
    mask = shift_left(ones(length, a.dtype), position)
    return (b & ~mask) | (shift_left(a, position) & mask)


def permute(a: Array, b: Array, selector: Array) -> Array:
    """prmt: four bytes chosen out of a (0-3) and b (4-7); bit 3 of a choice repeats the sign."""
    both = a.astype(np.uint64) | (b.astype(np.uint64) << _32)
    result = np.zeros(1, np.uint32)
    for place in range(4):
        choice = (selector >> np.uint32(4 * place)) & np.uint32(15)
        shift = (choice & np.uint32(7)).astype(np.uint64) * np.uint64(8)
        byte = ((both >> shift) & np.uint64(255)).astype(np.uint32)
        sign = np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0))
        byte = np.where(choice & np.uint32(8), sign, byte)
        result = result | (byte << np.uint32(8 * place))
    return result


def table(a: Array, b: Array, c: Array, lookup: int) -> Array:
    """lop3: each bit by the table `lookup`, indexed by the bits of a, b, c."""
    result = np.zeros(1, a.dtype)
    for index in range(8):
        if lookup >> index & 1:
            term = a if index & 4 else ~a
            term = term & (b if index & 2 else ~b)
            result = result | (term & (c if index & 1 else ~c))
    return result


def count_ones(a: Array) -> Array:
    """uint32: bits set in unsigned a."""
    a = a.astype(np.uint64)
    a = a - ((a >> np.uint64(1)) & np.uint64(0x5555555555555555))
    twos = np.uint64(0x3333333333333333)
    a = (a & twos) + ((a >> np.uint64(2)) & twos)
    a = (a + (a >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((a * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.uint32)


def bit_length(a: Array) -> Array:
    """uint32: position of the highest bit set in unsigned a, plus one; 0 of 0."""
    if a.dtype.itemsize == 8:
        high, low = (a >> _32).astype(np.uint32), a.astype(np.uint32)
        return np.where(high != 0, bit_length(high) + np.uint32(32), bit_length(low))
    return np.frexp(a.astype(np.float64))[1].astype(np.uint32)


def reverse(a: Array) -> Array:
    """Bits of unsigned a in opposite order."""
    dtype = a.dtype
    for shift, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        pattern = dtype.type(int.from_bytes(bytes([mask]) * dtype.itemsize, "little"))
        step = dtype.type(shift)
        a = ((a >> step) & pattern) | ((a & pattern) << step)
    return a.byteswap()


def funnel(low: Array, high: Array, amount: Array, *, left: bool, wrap: bool) -> Array:
    """shf: the 64 bits high:low shifted by `amount` (0..32 by clamp, modulo 32 by wrap)."""
    amount = amount & np.uint32(31) if wrap else np.minimum(amount, np.uint32(32))
    both = low.astype(np.uint64) | (high.astype(np.uint64) << _32)
    by = amount.astype(np.uint64)
    return ((both << by) >> _32 if left else both >> by).astype(np.uint32)
