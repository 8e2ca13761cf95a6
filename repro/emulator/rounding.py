"""Results rounded once, as IEEE 754 and PTX ask.

The trick throughout: compute in float64 rounded to odd (Boldo and Melquiond, Emulation of FMA and
correctly rounded sums, 2008). That keeps what later rounding needs to know, as long as the target
has two bits less, which float32, float16 and bfloat16 have.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .dtypes import F16, F32, F64, Array, DType

_LOW_28 = np.int64(0x0FFFFFFF)
_ONE = np.int64(1)
# Where the two-product below neither overflows nor loses bits, with room to spare.
_LARGE, _SMALL = 2.0**480, 2.0**-400


def add_odd(a: Array, b: Array) -> Array:
    """float64 a + b rounded to odd: inexact results have their last bit set."""
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)
    return _to_odd(total, error)


def _to_odd(total: Array, error: Array) -> Array:
    """`total`, whose exact value is total + error (|error| <= half an ulp), rounded to odd."""
    bits = np.ascontiguousarray(total).view(np.int64)
    wrong = (error != 0) & ((bits & _ONE) == 0) & np.isfinite(total)
    if not wrong.any():
        return total
    # Away from zero where the error has the sign of the total, towards zero otherwise.
    step = np.where((error > 0) == (total > 0), _ONE, -_ONE)
    return np.where(wrong, bits + step, bits).view(np.float64)


def fma_odd(a: Array, b: Array, c: Array) -> Array:
    """float64 a * b + c rounded to odd, of arguments whose product is exact in float64."""
    return add_odd(a.astype(F64) * b.astype(F64), c.astype(F64))


def fma32(a: Array, b: Array, c: Array) -> Array:
    """float32 a * b + c, rounded once to nearest even."""
    product = a.astype(F64) * b
    total = product + c
    # Rounding twice differs only where the first result is the middle of two float32, which ends
    # in at least 28 zeros.
    if np.logical_and.reduce((total.view(np.int64) & _LOW_28) != 0, axis=None):
        return total.astype(F32)
    return add_odd(product, c.astype(F64)).astype(F32)


def fma64(a: Array, b: Array, c: Array) -> Array:
    """float64 a * b + c, rounded once to nearest even."""
    a, b, c = np.broadcast_arrays(a, b, c)
    high = a * b
    low = _product_error(a, b, high)
    total, below = _two_sum(c, low)
    upper, lower = _two_sum(high, total)
    result: Array = upper + add_odd(below, lower)
    sizes = [np.abs(x) for x in (a, b, c, high)]
    tame = (high != 0) | (c != 0)
    for size in sizes:
        tame &= (size < _LARGE) & ((size > _SMALL) | (size == 0))
    tame &= (high != 0) | (a == 0) | (b == 0)
    if tame.all():
        return result
    result = np.array(result)
    for i in np.flatnonzero(~tame):
        result[i] = _fma_exact(float(a[i]), float(b[i]), float(c[i]))
    return result


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _product_error(a: Array, b: Array, product: Array) -> Array:
    """a * b - product, exactly (Dekker)."""
    factor = np.float64(2**27 + 1)
    a_high = factor * a - (factor * a - a)
    b_high = factor * b - (factor * b - b)
    a_low, b_low = a - a_high, b - b_high
    error: Array = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return error


def _fma_exact(a: float, b: float, c: float) -> float:
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:  # the sign of a zero is that of the sum of zeros
        return float(np.copysign(0.0, a) * np.copysign(1.0, b) + c) if 0 in (a, b) else 0.0
    try:
        return float(exact) or float(np.copysign(0.0, 1 if exact > 0 else -1))
    except OverflowError:
        return float(np.copysign(np.inf, 1 if exact > 0 else -1))


def narrow(value: Array, dtype: DType, mode: str) -> Array:
    """float64 (exact, or rounded to odd) to float32 or float16. mode: rn, rz, rm, rp."""
    result: Array = value.astype(dtype)
    if mode == "rn":
        return result
    wide = result.astype(F64)
    if mode == "rz":
        step = np.where(np.abs(wide) > np.abs(value), np.zeros(1, dtype), result)
    elif mode == "rm":
        step = np.where(wide > value, -np.inf, result).astype(dtype)
    else:
        step = np.where(wide < value, np.inf, result).astype(dtype)
    moved: Array = np.nextafter(result, step.astype(dtype))
    return np.where(step == result, result, moved) if mode != "rz" else moved


def to_bf16(value: Array) -> Array:
    """float32 or float64 to the bits (uint16) of the nearest bfloat16, ties to even."""
    if value.dtype == F64:
        value = odd32(value)
    bits = np.ascontiguousarray(value).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(value), np.uint16(0x7FFF), rounded.astype(np.uint16))


def odd32(value: Array) -> Array:
    """float64 to float32 rounded to odd."""
    near = narrow(value, F32, "rz")
    bits = near.view(np.uint32)
    inexact = (near.astype(F64) != value) & np.isfinite(value)
    result: Array = (bits | inexact.astype(np.uint32)).view(np.float32)
    return result


def from_bf16(bits: Array) -> Array:
    """The bits (uint16) of bfloat16 as float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


_CANONICAL: dict[DType, Array] = {
    F16: np.array([0x7FFF], np.uint16).view(np.float16),
    F32: np.array([0x7FFFFFFF], np.uint32).view(np.float32),
}


def canonical(value: Array) -> Array:
    """Computed values, every NaN as devices make it; of float64 theirs is the host's."""
    nan = np.isnan(value)
    if value.dtype == F64 or not nan.any():
        return value
    return np.where(nan, _CANONICAL[value.dtype], value)


def flush(value: Array) -> Array:
    """Subnormal values to zero of the same sign (.ftz)."""
    tiny = np.finfo(value.dtype).tiny
    flushed: Array = value * (np.abs(value) >= tiny).astype(value.dtype)
    return flushed


def saturate(value: Array) -> Array:
    """Clamped to 0..1; NaN becomes 0 (.sat)."""
    one = value.dtype.type(1)
    zero = value.dtype.type(0)
    result: Array = np.where(value > zero, np.minimum(value, one), zero)
    return result
