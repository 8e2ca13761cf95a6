"""Results rounded towards zero, up or down where no wider float holds them: by exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from .dtypes import Array, DType

Exact = Callable[..., Fraction]

# Rational operations, exact. A quotient by zero is no rational: see `directed`.
RATIONAL: dict[str, Exact] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
}
_NEAREST: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fma": lambda a, b, c: a * b + c,
    "div": np.divide,
    "rcp": lambda a: a.dtype.type(1) / a,
    "sqrt": np.sqrt,
}


def directed(name: str, mode: str, *values: Array) -> Array:
    """The operation on float32 or float64, rounded by `mode`: rz, rm, rp.

    Slow: an element at a time. Where an operand is no finite number, or the result is infinite
    whatever the mode or exactly zero, the result is that of IEEE 754.
    """
    values = tuple(np.broadcast_arrays(*values))
    dtype = values[0].dtype
    near = np.array(_NEAREST[name](*values), dtype)
    for i in range(near.size):
        operands = [float(value[i]) for value in values]
        if not all(np.isfinite(operands)):
            continue
        if name in ("div", "rcp") and operands[-1] == 0:
            continue
        if name == "sqrt":
            if operands[0] > 0:
                near[i] = _root(Fraction(operands[0]), near[i], mode, dtype)
            continue
        exact = RATIONAL[name](*(Fraction(operand) for operand in operands))
        if exact == 0:
            if mode == "rm" and name in ("add", "sub", "fma") and _opposite(name, operands):
                near[i] = -0.0
            continue
        near[i] = toward(exact, mode, dtype)
    return near


def _opposite(name: str, operands: list[float]) -> bool:
    """Whether a zero sum is one of terms of different signs; rounded down it is then -0."""
    if name == "fma":
        first = np.copysign(1, operands[0]) * np.copysign(1, operands[1])
        return bool(first != np.copysign(1, operands[2]))
    second = operands[1] if name == "add" else -operands[1]
    return bool(np.copysign(1, operands[0]) != np.copysign(1, second))


def toward(exact: Fraction, mode: str, dtype: DType) -> float:
    """`exact`, not zero, as the float of `dtype` next to it in the direction of `mode`."""
    if mode == "rz":
        mode = "rm" if exact > 0 else "rp"
    most = float(np.finfo(dtype).max)
    if abs(exact) > Fraction(most):
        if mode == "rm":
            return most if exact > 0 else -np.inf
        return np.inf if exact > 0 else -most
    found = dtype.type(float(exact))  # one step away at most
    if not np.isfinite(found):
        found = dtype.type(np.copysign(most, float(exact)))
    down, up = dtype.type(-np.inf), dtype.type(np.inf)
    if mode == "rm" and Fraction(float(found)) > exact:
        found = np.nextafter(found, down)
    elif mode == "rp" and Fraction(float(found)) < exact:
        found = np.nextafter(found, up)
    if found == 0:
        return float(np.copysign(0.0, 1 if exact > 0 else -1))
    return float(found)


def _root(exact: Fraction, near: float, mode: str, dtype: DType) -> float:
    """The square root of `exact` from the nearest float to it."""
    found = dtype.type(near)
    square = Fraction(float(found)) ** 2
    if mode == "rp" and square < exact:
        found = np.nextafter(found, dtype.type(np.inf))
    elif mode != "rp" and square > exact:
        found = np.nextafter(found, dtype.type(0))
    return float(found)


def integer(value: Array, mode: str) -> Array:
    """float64 of 64-bit integers, rounded by `mode`."""
    found = value.astype(np.float64)
    result = np.array(found)
    for i, each in enumerate(value.tolist()):
        if int(result[i]) != each:
            result[i] = toward(Fraction(each), mode, found.dtype)
    return result
