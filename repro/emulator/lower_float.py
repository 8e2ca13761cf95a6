"""Floating-point arithmetic.

Results of add, sub, mul, fma, div.rn, rcp.rn, sqrt.rn are those of IEEE 754. The approximations
(.approx, .full) are computed as exactly as numpy does, closer than a device's; no two devices need
agree on their bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .builder import Builder
from .closures import apply1, apply2, apply3
from .directed import directed
from .dtypes import F16, F32, F64, FLOATS, Array
from .float_formats import FORMATS
from .ptx import Instruction
from .rounding import add_odd, flush, fma32, fma64, fma_odd, narrow, saturate

Handler = Callable[[Builder, Instruction], None]
Function = Callable[..., Any]
ROUNDINGS = frozenset({"rn", "rz", "rm", "rp"})
_WIDE = frozenset({"f32", "f64"})
_UPPER = np.uint64(0xFFFFFFFF00000000)
# Types whose subnormals .ftz flushes; of bf16, only in ex2.
FLUSHED = frozenset({"f16", "f16x2", "f32", "f32x2"})
RELU = frozenset({"f16", "f16x2", "bf16", "bf16x2"})


def by_type(lower: Handler, integer: Handler | None) -> Handler:
    """A handler that takes float types to `lower` and all others to `integer`."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        if instruction.modifiers and instruction.modifiers[-1] in FLOATS:
            lower(builder, instruction)
        elif integer is not None:
            integer(builder, instruction)
        else:
            builder.unsupported()

    return handler


def _emit(
    builder: Builder,
    instruction: Instruction,
    function: Function,
    count: int,
    *,
    allowed: frozenset[str] = frozenset(),
) -> None:
    """result = function(operands), with .ftz and .sat; `allowed` are the other modifiers."""
    *words, kind = instruction.modifiers
    if set(words) - allowed - {"ftz", "sat"} or len(instruction.operands) != count + 1:
        builder.unsupported()
    form = FORMATS[kind]
    if "ftz" in words and kind not in FLUSHED and instruction.opcode != "ex2":
        builder.unsupported()
    if "ftz" in words:
        function = _flushed(function)
    if "sat" in words:
        if kind not in ("f32", "f16", "f16x2"):
            builder.unsupported()
        function = _saturated(function)
    if "relu" in words:
        if kind not in RELU:
            builder.unsupported()
        function = _rectified(function)
    function = form.around(function)
    slots = [builder.read(operand, form.dtype) for operand in instruction.operands[1:]]
    makes = {1: apply1, 2: apply2, 3: apply3}
    make: Any = makes[count]
    builder.assign(instruction.operands[0], form.dtype, make(function, *slots))


def _flushed(function: Function) -> Function:
    def wrapped(*values: Array) -> Array:
        return flush(function(*(flush(value) for value in values)))

    return wrapped


def _saturated(function: Function) -> Function:
    def wrapped(*values: Array) -> Array:
        return saturate(function(*values))

    return wrapped


def _rectified(function: Function) -> Function:
    """.relu: what is below zero becomes zero."""

    def wrapped(*values: Array) -> Array:
        result: Array = function(*values)
        return np.where(result < 0, result.dtype.type(0), result)

    return wrapped


def _rounding(builder: Builder, instruction: Instruction, default: str | None) -> str:
    found = [word for word in instruction.modifiers if word in ROUNDINGS]
    if len(found) > 1 or not (found or default):
        builder.unsupported()
    mode = found[0] if found else str(default)
    if mode != "rn" and instruction.modifiers[-1] not in ("f32", "f64", "f32x2"):
        builder.unsupported("only f32 and f64 are rounded in other ways than to nearest")
    return mode


def _directed(exact: Function, mode: str) -> Function:
    def wrapped(*values: Array) -> Array:
        return narrow(exact(*(value.astype(F64) for value in values)), F32, mode)

    return wrapped


def arithmetic(nearest: Function, exact: Function) -> Handler:
    """The handler of add, sub, mul. exact: the float64 result of float32, rounded to odd."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        mode = _rounding(builder, instruction, "rn")
        function = nearest if mode == "rn" else _directed(exact, mode)
        if mode != "rn" and instruction.modifiers[-1] == "f64":
            function = partial(directed, instruction.opcode, mode)
        _emit(builder, instruction, function, 2, allowed=ROUNDINGS)

    return handler


def fused(builder: Builder, instruction: Instruction) -> None:
    """fma (and mad, the same for floats): rounded once."""
    kind = instruction.modifiers[-1]
    mode = _rounding(builder, instruction, None)
    if kind == "f64":
        function: Function = fma64 if mode == "rn" else partial(directed, "fma", mode)
    elif kind in ("f32", "f32x2"):
        function = fma32 if mode == "rn" else _directed(fma_odd, mode)
    elif kind in ("f16", "f16x2"):
        function = _fma16
    else:
        function = fma_odd
    _emit(builder, instruction, function, 3, allowed=ROUNDINGS | {"relu"})


def _fma16(a: Array, b: Array, c: Array) -> Array:
    return narrow(fma_odd(a, b, c), F16, "rn")


def one(function: Function, *words: str, kinds: frozenset[str] = frozenset({"f32"})) -> Handler:
    """The handler of an operation on one float. words: the modifiers that it may have."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        if instruction.modifiers[-1] not in kinds:
            builder.unsupported()
        _emit(builder, instruction, function, 1, allowed=frozenset(words))

    return handler


def divide(builder: Builder, instruction: Instruction) -> None:
    """div, rounded or approximate."""
    if instruction.modifiers[-1] not in ("f32", "f64"):
        builder.unsupported()
    function = _of_mode(builder, instruction, np.divide)
    _emit(builder, instruction, function, 2, allowed=ROUNDINGS | {"full", "approx"})


def _of_mode(builder: Builder, instruction: Instruction, nearest: Function) -> Function:
    """The operation of this opcode, of which `nearest` is the one rounded to nearest."""
    mode = _rounding(builder, instruction, "rn")
    return nearest if mode == "rn" else partial(directed, instruction.opcode, mode)


def _reciprocal(x: Array) -> Array:
    result: Array = x.dtype.type(1) / x
    return result


def _gross(function: Function) -> Function:
    """.approx.ftz.f64: only the upper 32 bits of the operand count and of the result are given."""

    def wrapped(x: Array) -> Array:
        return _upper(flush(function(_upper(flush(x)))))

    return wrapped


def _upper(x: Array) -> Array:
    return (np.ascontiguousarray(x).view(np.uint64) & _UPPER).view(np.float64)


def approximate_inverse(function: Function, *words: str) -> Handler:
    """The handler of rcp and rsqrt: f32 as other functions, f64 exact or gross."""
    rough = _gross(function)

    def handler(builder: Builder, instruction: Instruction) -> None:
        if instruction.modifiers == ("approx", "ftz", "f64") and len(instruction.operands) == 2:
            result, operand = instruction.operands
            builder.assign(result, F64, apply1(rough, builder.read(operand, F64)))
        else:
            rounded = _of_mode(builder, instruction, function) if "rn" in words else function
            one(rounded, *words, kinds=_WIDE)(builder, instruction)

    return handler


def square_root(builder: Builder, instruction: Instruction) -> None:
    """sqrt, rounded or approximate."""
    function = _of_mode(builder, instruction, np.sqrt)
    one(function, *ROUNDINGS, "approx", kinds=_WIDE)(builder, instruction)


def _reciprocal_root(x: Array) -> Array:
    return (1.0 / np.sqrt(x.astype(F64))).astype(x.dtype)


def smaller(a: Array, b: Array) -> Array:
    """The minimum; a number where the other is NaN; -0 below +0."""
    least: Array = np.fmin(a, b)
    if np.logical_and.reduce(least, axis=None):
        return least
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), a, b), least)


def larger(a: Array, b: Array) -> Array:
    """The maximum; a number where the other is NaN; +0 above -0."""
    most: Array = np.fmax(a, b)
    if np.logical_and.reduce(most, axis=None):
        return most
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), b, a), most)


def _with_nan(function: Function, a: Array, b: Array) -> Array:
    result: Array = np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), function(a, b))
    return result


def extreme(function: Function) -> Handler:
    """The handler of min and max."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        chosen = function
        if "NaN" in instruction.modifiers:
            chosen = partial(_with_nan, function)
        words = [word for word in instruction.modifiers if word in ("xorsign", "abs")]
        count = len(instruction.operands) - 1
        if words == ["xorsign", "abs"] and count == 2:
            chosen = partial(_of_sizes, chosen)
        elif words == ["abs"] and count == 3:
            chosen = partial(_of_three, chosen, sizes=True)
        elif count == 3 and not words:
            chosen = partial(_of_three, chosen, sizes=False)
        elif words or count != 2:
            builder.unsupported()
        if count == 3 and instruction.modifiers[-1] != "f32":
            builder.unsupported()
        _emit(builder, instruction, chosen, count, allowed=frozenset({"NaN", "xorsign", "abs"}))

    return handler


def _of_sizes(function: Function, a: Array, b: Array) -> Array:
    """.xorsign.abs: of the absolute values, with the product of the signs."""
    size: Array = function(np.abs(a), np.abs(b))
    negative = np.signbit(a) ^ np.signbit(b)
    return np.where(negative, -size, size)


def _of_three(function: Function, a: Array, b: Array, c: Array, *, sizes: bool) -> Array:
    if sizes:
        a, b, c = np.abs(a), np.abs(b), np.abs(c)
    found: Array = function(function(a, b), c)
    return found


def copy_sign(builder: Builder, instruction: Instruction) -> None:
    """copysign: the sign of a on b."""
    if instruction.modifiers not in (("f32",), ("f64",)):
        builder.unsupported()
    _emit(builder, instruction, lambda a, b: np.copysign(b, a), 2)


_ALL = FLOATS
_NARROW = FLOATS - {"f64", "f32x2"}

HANDLERS: dict[str, Handler] = {
    "add": arithmetic(np.add, add_odd),
    "sub": arithmetic(np.subtract, lambda a, b: add_odd(a, -b)),
    "mul": arithmetic(np.multiply, np.multiply),
    "fma": fused,
    "mad": fused,
    "div": divide,
    "min": extreme(smaller),
    "max": extreme(larger),
    "neg": one(np.negative, kinds=_ALL),
    "abs": one(np.abs, kinds=_ALL),
    "rcp": approximate_inverse(_reciprocal, *ROUNDINGS, "approx"),
    "sqrt": square_root,
    "rsqrt": approximate_inverse(_reciprocal_root, "approx"),
    "ex2": one(np.exp2, "approx", kinds=_NARROW),
    "lg2": one(np.log2, "approx"),
    "sin": one(np.sin, "approx"),
    "cos": one(np.cos, "approx"),
    "tanh": one(np.tanh, "approx", kinds=_NARROW),
    "copysign": copy_sign,
}
