"""Integers of 8 and 16 bits in wider registers: dp4a, dp2a, and pairs of 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .builder import Builder
from .closures import apply2, apply3
from .dtypes import DTYPES, SIGNED, UNSIGNED, Array
from .ptx import Instruction

Handler = Callable[[Builder, Instruction], None]
PAIRS = {"u16x2": UNSIGNED[2], "s16x2": SIGNED[2]}


def dot(parts: int) -> Handler:
    """The handler of dp4a (4 products of bytes) and dp2a (2, of 16 bits by bytes)."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        words = list(instruction.modifiers)
        half = words.pop(0) if parts == 2 and words else "lo"
        if len(words) != 2 or not set(words) <= {"u32", "s32"} or half not in ("lo", "hi"):
            builder.unsupported()
        if len(instruction.operands) != 4:
            builder.unsupported()
        left = _kind(words[0])[4 // parts]
        right = _kind(words[1])[1]
        out = DTYPES["u32" if words == ["u32", "u32"] else "s32"]
        first = 2 if half == "hi" else 0

        def function(a: Array, b: Array, c: Array) -> Array:
            x = np.ascontiguousarray(a).view(left).reshape(-1, parts).astype(np.int64)
            y = np.ascontiguousarray(b).view(right).reshape(-1, 4).astype(np.int64)
            total = (x * y[:, first : first + parts]).sum(1) + c
            found: Array = total.astype(np.uint64).astype(np.uint32).view(out)
            return found

        result, a, b, c = instruction.operands
        slots = builder.read(a, UNSIGNED[4]), builder.read(b, UNSIGNED[4]), builder.read(c, out)
        builder.assign(result, out, apply3(function, *slots))

    return handler


def _kind(word: str) -> dict[int, Any]:
    return SIGNED if word == "s32" else UNSIGNED


def pairs(function: Callable[..., Any], otherwise: Handler) -> Handler:
    """The handler of an operation that also takes u16x2 and s16x2."""

    def handler(builder: Builder, instruction: Instruction) -> None:
        kind = instruction.modifiers[-1] if instruction.modifiers else ""
        if kind not in PAIRS:
            otherwise(builder, instruction)
            return
        if len(instruction.modifiers) != 1 or len(instruction.operands) != 3:
            builder.unsupported()
        part, word = PAIRS[kind], UNSIGNED[4]

        def both(a: Array, b: Array) -> Array:
            x = np.ascontiguousarray(a).view(part).reshape(-1, 2)
            y = np.ascontiguousarray(b).view(part).reshape(-1, 2)
            found: Array = np.ascontiguousarray(function(x, y)).view(word).reshape(-1)
            return found

        result, a, b = instruction.operands
        slots = builder.read(a, word), builder.read(b, word)
        builder.assign(result, word, apply2(both, *slots))

    return handler


HANDLERS = {"dp4a": dot(4), "dp2a": dot(2)}
