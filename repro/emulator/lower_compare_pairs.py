"""Comparisons of pairs of 16-bit floats: setp and set of f16x2 and bf16x2, set of f16 and bf16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .builder import Builder
from .closures import apply1, apply2, copy
from .dtypes import BOOL, UNSIGNED, Array
from .float_formats import FORMATS
from .ptx import Instruction, Pair, Sink
from .rounding import flush

PAIRS = frozenset({"f16x2", "bf16x2"})
# What is true in each result type, in 16 bits, and in a pair of them.
TRUE = {"f16": 0x3C00, "bf16": 0x3F80, "u16": 0xFFFF, "s16": 0xFFFF}
TRUE_PAIR = {"f16x2": 0x3C00, "bf16x2": 0x3F80, "u32": 0xFFFF, "s32": 0xFFFF}

Compare = Callable[[Any, Any], Any]


def _halves(builder: Builder, instruction: Instruction, function: Compare, kind: str) -> int:
    """The slot of bool[threads, 2]: the comparison of both halves."""
    form = FORMATS[kind]
    if "ftz" in instruction.modifiers:
        if kind not in ("f16", "f16x2"):
            builder.unsupported()
        compare = function

        def function(a: Array, b: Array) -> Any:
            return compare(flush(a), flush(b))

    a, b = instruction.operands[1:3]
    slots = builder.read(a, form.dtype), builder.read(b, form.dtype)
    return builder.compute(apply2(form.around(function, encode=False), *slots))


def set_pair_predicates(
    builder: Builder, instruction: Instruction, function: Compare, combine: Any, kind: str
) -> None:
    """setp: `p|q, a, b {, c}`: p of the lower halves, q of the upper."""
    result = instruction.operands[0]
    both = _halves(builder, instruction, function, kind)
    results = (result.first, result.second) if isinstance(result, Pair) else (result, Sink())
    predicate = builder.predicate
    other = builder.read(instruction.operands[3], BOOL) if combine is not None else None
    for number, register in enumerate(results):
        slot = builder.compute(apply1(lambda found, n=number: found[:, n], both))
        if other is not None:
            slot = builder.compute(apply2(combine, slot, other))
        builder.predicate = predicate
        builder.assign(register, BOOL, copy(slot))


def set_half_values(
    builder: Builder,
    instruction: Instruction,
    function: Compare,
    combine: Any,
    to: str,
    kind: str,
) -> None:
    """set: each comparison as 1.0 or all ones, else 0."""
    pair = kind in PAIRS
    true = (TRUE_PAIR if pair else TRUE).get(to)
    if true is None:
        builder.unsupported()
    slot = _halves(builder, instruction, function, kind)
    if combine is not None:
        other = builder.read(instruction.operands[3], BOOL)

        def combined(found: Array, value: Array) -> Array:
            result: Array = combine(found, value[:, None] if pair else value)
            return result

        slot = builder.compute(apply2(combined, slot, other))
    wide = UNSIGNED[4 if pair else 2]

    def values(found: Array) -> Array:
        halves = np.ascontiguousarray(np.where(found, np.uint16(true), np.uint16(0)))
        return halves.view(wide).reshape(-1)

    builder.assign(instruction.operands[0], wide, apply1(values, slot))
