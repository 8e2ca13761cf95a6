"""Integer arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .builder import Builder
from .closures import apply1, apply2, apply3
from .dataflow import CARRY
from .dtypes import BOOL, DTYPES, SIGNED, Array, DType, unsigned
from .integers import divide, multiply_high, remainder
from .lower_dot import pairs
from .ptx import Instruction, Operand

KINDS = frozenset({"s16", "u16", "s32", "u32", "s64", "u64"})


def _type(builder: Builder, instruction: Instruction, count: int, *words: str) -> DType:
    """The dtype of an instruction with `count` operands and no modifiers but `words`."""
    *rest, kind = instruction.modifiers or ("",)
    if kind not in KINDS or len(instruction.operands) != count or set(rest) - set(words):
        builder.unsupported()
    return DTYPES[kind]


def add_sub(builder: Builder, instruction: Instruction) -> None:
    """add, sub, with .sat (s32), .cc and, as addc and subc, the carry."""
    name = instruction.opcode
    takes, gives = name in ("addc", "subc"), "cc" in instruction.modifiers
    dtype = _type(builder, instruction, 3, "cc", "sat")
    result, a, b = instruction.operands
    function: Callable[..., Any] = np.add if name.startswith("add") else np.subtract
    if takes or gives:
        if "sat" in instruction.modifiers:
            builder.unsupported()
        slots = _both(builder, instruction, unsigned(dtype))
        _with_carry(builder, result, dtype, slots, function, takes=takes, gives=gives)
    elif "sat" in instruction.modifiers:
        if dtype != SIGNED[4]:
            builder.unsupported()
        slots = builder.read(a, dtype), builder.read(b, dtype)
        builder.assign(result, dtype, apply2(_saturating(function), *slots))
    else:
        dtype = builder.integer(result, dtype)
        builder.assign(result, dtype, apply2(function, *_both(builder, instruction, dtype)))


def _both(builder: Builder, instruction: Instruction, dtype: DType) -> tuple[int, int]:
    _, a, b = instruction.operands[:3]
    return builder.read(a, dtype), builder.read(b, dtype)


def _saturating(function: Callable[..., Any]) -> Callable[..., Any]:
    def saturated(a: Array, b: Array) -> Array:
        exact = function(a.astype(np.int64), b.astype(np.int64))
        result: Array = np.clip(exact, -(1 << 31), (1 << 31) - 1).astype(np.int32)
        return result

    return saturated


def _with_carry(
    builder: Builder,
    result: Operand,
    dtype: DType,
    slots: tuple[int, int],
    function: Callable[..., Any],
    *,
    takes: bool,
    gives: bool,
) -> None:
    """result = function(slots, carry), the slots being unsigned."""
    if builder.predicate is not None:
        builder.unsupported("predicated")
    dtype = unsigned(dtype)
    a, b = slots
    carry = builder.read(CARRY, BOOL) if takes else builder.constant(0, BOOL)
    adds = function is np.add

    def total(x: Array, y: Array, c: Array) -> Array:
        out: Array = function(function(x, y), c.astype(dtype))
        return out

    def overflow(x: Array, y: Array, c: Array) -> Array:
        # Adding: the sum wrapped. Subtracting: a borrow is kept in the same flag.
        if adds:
            first = x + y
            out: Array = (first < x) | (c & (first == ~dtype.type(0)))
        else:
            out = (x < y) | (c & (x == y))
        return out

    flag = builder.compute(apply3(overflow, a, b, carry))
    builder.assign(result, dtype, apply3(total, a, b, carry))
    if gives:
        builder.assign(CARRY, BOOL, apply1(lambda value: value, flag))


def multiply(builder: Builder, instruction: Instruction) -> None:
    """mul.lo, mul.hi, mul.wide, mul24.lo, and mad with the same."""
    adds = instruction.opcode.startswith("mad")
    takes, gives = instruction.opcode == "madc", "cc" in instruction.modifiers
    dtype = _type(builder, instruction, 4 if adds else 3, "lo", "hi", "wide", "cc")
    part = instruction.modifiers[0]
    if len(instruction.modifiers) != 2 + gives or part == "cc":
        builder.unsupported()
    if takes or gives:
        _multiply_with_carry(builder, instruction, dtype, part, takes=takes, gives=gives)
        return
    result, a, b = instruction.operands[:3]
    if part == "lo":
        dtype = builder.integer(result, dtype)
        function: Callable[..., Any] = np.multiply
        out = dtype
    elif part == "hi":
        function, out = multiply_high, dtype
    else:
        if dtype.itemsize == 8:
            builder.unsupported()
        out = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        function = _wide(out)
    x, y = builder.read(a, dtype), builder.read(b, dtype)
    if not adds:
        builder.assign(result, out, apply2(function, x, y))
        return
    z = builder.read(instruction.operands[3], out)
    builder.assign(result, out, apply3(lambda p, q, r: function(p, q) + r, x, y, z))


def _multiply_with_carry(
    builder: Builder, instruction: Instruction, dtype: DType, part: str, *, takes: bool, gives: bool
) -> None:
    """mad.cc and madc: half of a product, plus c, plus the carry."""
    if part not in ("lo", "hi") or len(instruction.operands) != 4:
        builder.unsupported()
    result, a, b, c = instruction.operands
    function = np.multiply if part == "lo" else multiply_high
    x, y = builder.read(a, dtype), builder.read(b, dtype)
    bits = unsigned(dtype)
    product = builder.compute(apply2(lambda p, q: function(p, q).view(bits), x, y))
    slots = product, builder.read(c, bits)
    _with_carry(builder, result, dtype, slots, np.add, takes=takes, gives=gives)


def multiply_24(builder: Builder, instruction: Instruction) -> None:
    """mul24, mad24: lower or upper 32 of the 48 bits that the lower 24 of the factors give."""
    adds = instruction.opcode == "mad24"
    dtype = _type(builder, instruction, 4 if adds else 3, "lo", "hi")
    if dtype.itemsize != 4 or len(instruction.modifiers) != 2:
        builder.unsupported()
    shift = np.int64(0 if instruction.modifiers[0] == "lo" else 16)
    unused = np.int64(40)

    def function(a: Array, b: Array, c: Array) -> Array:
        wide: DType = SIGNED[8] if dtype.kind == "i" else unsigned(SIGNED[8])
        x, y = ((v.astype(np.int64) << unused).view(wide) >> wide.type(unused) for v in (a, b))
        product = (x * y).view(np.int64) >> shift
        result: Array = product.astype(dtype) + c
        return result

    result, a, b, *rest = instruction.operands
    c = builder.read(rest[0], dtype) if rest else builder.constant(0, dtype)
    builder.assign(
        result, dtype, apply3(function, builder.read(a, dtype), builder.read(b, dtype), c)
    )


def _wide(out: DType) -> Callable[..., Any]:
    def function(a: Array, b: Array) -> Array:
        result: Array = a.astype(out) * b.astype(out)
        return result

    return function


def two(function: Callable[..., Any]) -> Callable[[Builder, Instruction], None]:
    """The handler of an operation on two integers in which the sign matters."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        dtype = _type(builder, instruction, 3)
        result = instruction.operands[0]
        builder.assign(result, dtype, apply2(function, *_both(builder, instruction, dtype)))

    return handler


def one(function: Callable[..., Any]) -> Callable[[Builder, Instruction], None]:
    """The handler of an operation on one integer."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        dtype = _type(builder, instruction, 2)
        result, a = instruction.operands
        builder.assign(result, dtype, apply1(function, builder.read(a, dtype)))

    return handler


def sum_of_differences(builder: Builder, instruction: Instruction) -> None:
    """sad: |a - b| + c."""
    dtype = _type(builder, instruction, 4)
    result, a, b, c = instruction.operands
    slots = (builder.read(operand, dtype) for operand in (a, b, c))
    builder.assign(
        result,
        dtype,
        apply3(lambda x, y, z: np.where(x < y, y - x, x - y) + z, *slots),
    )


HANDLERS = {
    "add": pairs(np.add, add_sub),
    "sub": add_sub,
    "addc": add_sub,
    "subc": add_sub,
    "mul": multiply,
    "mad": multiply,
    "madc": multiply,
    "div": two(divide),
    "rem": two(remainder),
    "mul24": multiply_24,
    "mad24": multiply_24,
    "min": pairs(np.minimum, two(np.minimum)),
    "max": pairs(np.maximum, two(np.maximum)),
    "neg": one(np.negative),
    "abs": one(np.abs),
    "sad": sum_of_differences,
}
