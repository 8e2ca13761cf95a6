"""Logic, shifts and bit fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .builder import Builder
from .closures import apply1, apply2, apply3
from .dtypes import BOOL, DTYPES, UNSIGNED, Array, DType
from .integers import (
    bit_length,
    count_ones,
    extract,
    funnel,
    insert,
    permute,
    reverse,
    shift_left,
    shift_right,
    table,
)
from .program import Make
from .ptx import Immediate, Instruction

U32 = UNSIGNED[4]
Handler = Callable[[Builder, Instruction], None]


def _type(builder: Builder, instruction: Instruction, count: int, *kinds: str) -> DType:
    if (
        len(instruction.modifiers) != 1
        or instruction.modifiers[0] not in kinds
        or len(instruction.operands) != count
    ):
        builder.unsupported()
    return DTYPES[instruction.modifiers[0]]


def logic(function: Callable[..., Any]) -> Handler:
    """The handler of and, or, xor."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        dtype = _type(builder, instruction, 3, "pred", "b16", "b32", "b64")
        result, a, b = instruction.operands
        if dtype != BOOL:
            dtype = builder.integer(result, dtype)
        builder.assign(
            result, dtype, apply2(function, builder.read(a, dtype), builder.read(b, dtype))
        )

    return handler


def invert(builder: Builder, instruction: Instruction) -> None:
    """not"""
    dtype = _type(builder, instruction, 2, "pred", "b16", "b32", "b64")
    result, a = instruction.operands
    if dtype != BOOL:
        dtype = builder.integer(result, dtype)
    builder.assign(result, dtype, apply1(np.invert, builder.read(a, dtype)))


def is_zero(builder: Builder, instruction: Instruction) -> None:
    """cnot: 1 for 0, else 0."""
    dtype = _type(builder, instruction, 2, "b16", "b32", "b64")
    result, a = instruction.operands
    builder.assign(result, dtype, apply1(lambda x: (x == 0).astype(dtype), builder.read(a, dtype)))


def shift(builder: Builder, instruction: Instruction) -> None:
    """shl, shr: by 32-bit amounts, those beyond the width clamped."""
    left = instruction.opcode == "shl"
    kinds = [f"{kind}{bits}" for kind in ("b" if left else "bus") for bits in (16, 32, 64)]
    dtype = _type(builder, instruction, 3, *kinds)
    result, a, amount = instruction.operands
    if left:
        dtype = builder.integer(result, dtype)
    source = builder.read(a, dtype)
    if isinstance(amount, Immediate) and 0 <= amount.value < 8 * dtype.itemsize:
        by = dtype.type(amount.value)
        function = np.left_shift if left else np.right_shift
        builder.assign(result, dtype, apply1(lambda x: function(x, by), source))
        return
    slots = source, builder.read(amount, U32)
    builder.assign(result, dtype, apply2(shift_left if left else shift_right, *slots))


def field(builder: Builder, instruction: Instruction) -> None:
    """bfe"""
    dtype = _type(builder, instruction, 4, "u32", "s32", "u64", "s64")
    result, a, position, length = instruction.operands
    slots = (builder.read(a, dtype), builder.read(position, U32), builder.read(length, U32))
    builder.assign(result, dtype, apply3(extract, *slots))


def field_insert(builder: Builder, instruction: Instruction) -> None:
    """bfi"""
    dtype = _type(builder, instruction, 5, "b32", "b64")
    result, a, b, position, length = instruction.operands
    first, second = builder.read(a, dtype), builder.read(b, dtype)
    builder.assign(
        result,
        dtype,
        _apply4(insert, first, second, builder.read(position, U32), builder.read(length, U32)),
    )


def _apply4(function: Callable[..., Any], a: int, b: int, c: int, e: int) -> Make:
    def make(d: int) -> Callable[[list[Any]], None]:
        def run(file: list[Any]) -> None:
            file[d] = function(file[a], file[b], file[c], file[e])

        return run

    return make


# Of the two low bits of the selector, the bytes that each mode of prmt takes (PTX ISA, prmt).
PERMUTATIONS = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def permutation(builder: Builder, instruction: Instruction) -> None:
    """prmt, in its general mode and the others."""
    mode = instruction.modifiers[-1] if instruction.modifiers else ""
    function: Callable[..., Any] = permute
    if mode in PERMUTATIONS:
        instruction = replace(instruction, modifiers=instruction.modifiers[:-1])
        choices = np.array(PERMUTATIONS[mode], np.uint32)

        def function(a: Array, b: Array, selector: Array) -> Array:
            return permute(a, b, choices[selector & np.uint32(3)])

    dtype = _type(builder, instruction, 4, "b32")
    result, *sources = instruction.operands
    slots = [builder.read(source, dtype) for source in sources]
    builder.assign(result, dtype, apply3(function, *slots))


def _field_mode(builder: Builder, instruction: Instruction) -> tuple[str, Instruction]:
    """.clamp or .wrap, and the instruction without."""
    mode = instruction.modifiers[0] if instruction.modifiers else ""
    if mode not in ("clamp", "wrap"):
        builder.unsupported()
    return mode, replace(instruction, modifiers=instruction.modifiers[1:])


def extension(builder: Builder, instruction: Instruction) -> None:
    """szext: the lower b bits of a, extended by their sign or by zeros."""
    mode, instruction = _field_mode(builder, instruction)
    dtype = _type(builder, instruction, 3, "u32", "s32")
    result, a, amount = instruction.operands

    def extend(value: Array, bits: Array) -> Array:
        left = np.int64(32) - _bits(bits, mode).astype(np.int64)
        wide = value.view(U32).astype(np.uint64) << np.uint64(32)
        moved = np.left_shift(wide, left.astype(np.uint64)).view(np.int64)
        if dtype.kind == "u":
            moved = (moved.view(np.uint64) >> np.uint64(32)).view(np.int64)
            found: Array = (moved >> left).astype(np.uint32)
        else:
            found = ((moved >> np.int64(32)) >> left).astype(np.int32)
        return found

    builder.assign(result, dtype, apply2(extend, builder.read(a, dtype), builder.read(amount, U32)))


def bit_mask(builder: Builder, instruction: Instruction) -> None:
    """bmsk: b ones from bit a on."""
    mode, instruction = _field_mode(builder, instruction)
    dtype = _type(builder, instruction, 3, "b32")
    result, position, length = instruction.operands

    def mask(start: Array, count: Array) -> Array:
        bits = (np.uint64(1) << _bits(count, mode).astype(np.uint64)) - np.uint64(1)
        return (bits << _bits(start, mode).astype(np.uint64)).astype(np.uint32)

    slots = builder.read(position, U32), builder.read(length, U32)
    builder.assign(result, dtype, apply2(mask, *slots))


def _bits(value: Array, mode: str) -> Array:
    """A number of bits: up to 32, or modulo 32."""
    return np.minimum(value, np.uint32(32)) if mode == "clamp" else value & np.uint32(31)


def lookup(builder: Builder, instruction: Instruction) -> None:
    """lop3"""
    dtype = _type(builder, instruction, 5, "b32")
    result, *sources, entries = instruction.operands
    if not isinstance(entries, Immediate) or not 0 <= entries.value < 256:
        builder.unsupported()
    slots = [builder.read(source, dtype) for source in sources]
    builder.assign(result, dtype, apply3(partial(table, lookup=entries.value), *slots))


def count(function: Callable[[Array], Array]) -> Handler:
    """The handler of popc and clz: 32-bit results of b32 and b64."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        dtype = _type(builder, instruction, 2, "b32", "b64")
        result, a = instruction.operands
        builder.assign(result, U32, apply1(function, builder.read(a, dtype)))

    return handler


def leading_zeros(a: Array) -> Array:
    """uint32: zeros above the highest bit set."""
    return np.uint32(8 * a.dtype.itemsize) - bit_length(a)


def reversal(builder: Builder, instruction: Instruction) -> None:
    """brev"""
    dtype = _type(builder, instruction, 2, "b32", "b64")
    result, a = instruction.operands
    builder.assign(result, dtype, apply1(reverse, builder.read(a, dtype)))


def highest(builder: Builder, instruction: Instruction) -> None:
    """bfind: position of the highest bit that is no sign bit, all ones where there is none."""
    shifts = instruction.modifiers[:1] == ("shiftamt",)
    kind = instruction.modifiers[-1] if instruction.modifiers else ""
    if (
        len(instruction.modifiers) != 1 + shifts
        or kind not in ("u32", "s32", "u64", "s64")
        or len(instruction.operands) != 2
    ):
        builder.unsupported()
    result, a = instruction.operands
    dtype = DTYPES[kind]

    def find(value: Array) -> Array:
        if dtype.kind == "i":
            value = np.where(value < 0, ~value, value)
        found = bit_length(value.view(UNSIGNED[dtype.itemsize])) - np.uint32(1)
        if not shifts:
            return found
        missing = found == np.uint32(0xFFFFFFFF)
        return np.where(missing, found, np.uint32(8 * dtype.itemsize - 1) - found)

    builder.assign(result, U32, apply1(find, builder.read(a, dtype)))


def funnel_shift(builder: Builder, instruction: Instruction) -> None:
    """shf.l and shf.r, wrapping or clamping"""
    if len(instruction.modifiers) != 3 or len(instruction.operands) != 4:
        builder.unsupported()
    way, mode, kind = instruction.modifiers
    if way not in "lr" or mode not in ("wrap", "clamp") or kind != "b32":
        builder.unsupported()
    result, *sources = instruction.operands
    slots = [builder.read(source, U32) for source in sources]
    function = partial(funnel, left=way == "l", wrap=mode == "wrap")
    builder.assign(result, U32, apply3(function, *slots))


HANDLERS: dict[str, Handler] = {
    "and": logic(np.bitwise_and),
    "or": logic(np.bitwise_or),
    "xor": logic(np.bitwise_xor),
    "not": invert,
    "cnot": is_zero,
    "shl": shift,
    "shr": shift,
    "bfe": field,
    "bfi": field_insert,
    "prmt": permutation,
    "szext": extension,
    "bmsk": bit_mask,
    "lop3": lookup,
    "popc": count(count_ones),
    "clz": count(leading_zeros),
    "brev": reversal,
    "bfind": highest,
    "shf": funnel_shift,
}
