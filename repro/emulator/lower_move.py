"""Moves: registers, literals, special registers, addresses, packing and unpacking."""

from __future__ import annotations

import numpy as np

from .builder import Builder
from .closures import apply1, apply2, copy
from .dtypes import BOOL, DTYPES, UNSIGNED, Array, DType
from .program import Make
from .ptx import Instruction, Operand, Sink, Symbol, Vector


def move(builder: Builder, instruction: Instruction) -> None:
    """mov: also to and from `{a, b}`."""
    if len(instruction.modifiers) != 1 or len(instruction.operands) != 2:
        builder.unsupported()
    (kind,) = instruction.modifiers
    result, source = instruction.operands
    if kind not in DTYPES:
        builder.unsupported()
    if isinstance(source, Vector):
        _pack(builder, result, source.items, DTYPES[kind])
    elif isinstance(result, Vector):
        _unpack(builder, result.items, source, DTYPES[kind])
    elif kind == "pred":
        builder.assign(result, BOOL, copy(builder.read(source, BOOL)))
    else:
        dtype = DTYPES[kind] if isinstance(source, Symbol) else builder.home(result, DTYPES[kind])
        builder.assign(result, dtype, copy(builder.read(source, dtype, bits=True)))


def _pack(builder: Builder, result: Operand, items: tuple[Operand, ...], wide: DType) -> None:
    count = len(items)
    if count not in (2, 4) or wide.itemsize % count or wide.itemsize // count not in UNSIGNED:
        builder.unsupported()
    part = UNSIGNED[wide.itemsize // count]
    wide = UNSIGNED[wide.itemsize]
    slot = builder.compute(_shifted(builder.read(items[0], part, bits=True), wide, 0))
    for number, item in enumerate(items[1:], 1):
        shift = 8 * part.itemsize * number
        piece = builder.compute(_shifted(builder.read(item, part, bits=True), wide, shift))
        slot = builder.compute(apply2(np.bitwise_or, slot, piece))
    builder.assign(result, wide, copy(slot))


def _shifted(slot: int, wide: DType, shift: int) -> Make:
    amount = wide.type(shift)

    def function(value: Array) -> Array:
        result: Array = value.astype(wide) << amount
        return result

    return apply1(function, slot)


def _unpack(builder: Builder, items: tuple[Operand, ...], source: Operand, wide: DType) -> None:
    count = len(items)
    if count not in (2, 4) or wide.itemsize % count or wide.itemsize // count not in UNSIGNED:
        builder.unsupported()
    part = UNSIGNED[wide.itemsize // count]
    slot = builder.read(source, UNSIGNED[wide.itemsize], bits=True)
    predicate = builder.predicate
    for number, item in enumerate(items):
        if not isinstance(item, Sink):
            builder.predicate = predicate
            builder.assign(item, part, _part(slot, part, 8 * part.itemsize * number, wide))


def _part(slot: int, part: DType, shift: int, wide: DType) -> Make:
    amount = UNSIGNED[wide.itemsize].type(shift)

    def function(value: Array) -> Array:
        result: Array = (value >> amount).astype(part)
        return result

    return apply1(function, slot)


HANDLERS = {"mov": move}
