"""Comparisons and selections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .builder import Builder
from .closures import apply1, apply2, apply3, copy
from .dtypes import BOOL, DTYPES, FLOATS, SIGNED, Array, DType
from .float_formats import FORMATS
from .lower_compare_pairs import PAIRS, TRUE, set_half_values, set_pair_predicates
from .ptx import Instruction, Operand, Pair, Sink
from .rounding import flush

Compare = Callable[[Any, Any], Any]

ORDERED: dict[str, Compare] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
# Of floats: `ne` is false and the ...u forms are true where an operand is NaN.
FLOAT: dict[str, Compare] = ORDERED | {
    "ne": lambda a, b: (a < b) | (a > b),
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}
COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
SCALARS = frozenset({"f16", "bf16", "f32", "f64"})


def _flushed(function: Compare) -> Compare:
    def compare(a: Array, b: Array) -> Any:
        return function(flush(a), flush(b))

    return compare


def _compare(builder: Builder, name: str, kind: str, a: Operand, b: Operand, *, ftz: bool) -> int:
    """The slot of the result of one comparison."""
    if kind in SCALARS:
        function = FLOAT.get(name)
        form = FORMATS[kind]
        if function is None or (ftz and kind != "f32"):
            builder.unsupported()
        if ftz:
            function = _flushed(function)
        if form.decode is not None:
            function = form.around(function, encode=False)
        dtype = form.dtype
    else:
        if kind not in DTYPES or kind in ("pred", "b8", "s8", "u8") or kind in FLOATS or ftz:
            builder.unsupported()
        dtype = DTYPES[kind]
        if name in UNSIGNED_NAMES and dtype.kind != "u":
            builder.unsupported()
        name = UNSIGNED_NAMES.get(name, name)
        if kind[0] == "b" and name not in ("eq", "ne"):
            builder.unsupported()
        function = ORDERED.get(name)
        if function is None:
            builder.unsupported()
        if name in ("eq", "ne"):
            dtype = builder.integer(a, dtype)
    return builder.compute(apply2(function, builder.read(a, dtype), builder.read(b, dtype)))


def set_predicate(builder: Builder, instruction: Instruction) -> None:
    """setp: `setp.cmp.type p|q, a, b` and `setp.cmp.and.type p|q, a, b, {!}c`."""
    words = [word for word in instruction.modifiers if word != "ftz"]
    ftz = len(words) != len(instruction.modifiers)
    combine = COMBINE.get(words[1]) if len(words) == 3 else None
    if len(words) not in (2, 3) or len(instruction.operands) != 3 + (len(words) == 3):
        builder.unsupported()
    if len(words) == 3 and combine is None:
        builder.unsupported()
    result, a, b = instruction.operands[:3]
    if words[-1] in PAIRS:
        function = FLOAT.get(words[0])
        if function is None:
            builder.unsupported()
        set_pair_predicates(builder, instruction, function, combine, words[-1])
        return
    slot = _compare(builder, words[0], words[-1], a, b, ftz=ftz)
    results = [result.first, result.second] if isinstance(result, Pair) else [result]
    slots = [slot]
    if len(results) == 2:
        slots.append(builder.compute(apply1(np.logical_not, slot)))
    if combine is not None:
        other = builder.read(instruction.operands[3], BOOL)
        slots = [builder.compute(apply2(combine, each, other)) for each in slots]
    predicate = builder.predicate
    for register, each in zip(results, slots, strict=True):
        builder.predicate = predicate
        builder.assign(register, BOOL, copy(each))


def set_value(builder: Builder, instruction: Instruction) -> None:
    """set: a comparison as all ones or 1.0, else 0."""
    words = [word for word in instruction.modifiers if word != "ftz"]
    ftz = len(words) != len(instruction.modifiers)
    combine = COMBINE.get(words[1]) if len(words) == 4 else None
    if len(words) not in (3, 4) or len(instruction.operands) != 3 + (len(words) == 4):
        builder.unsupported()
    if len(words) == 4 and combine is None:
        builder.unsupported()
    if words[-1] in PAIRS or words[-2] in TRUE:
        function = FLOAT.get(words[0])
        if function is None or words[-1] not in FORMATS or FORMATS[words[-1]].dtype.itemsize > 4:
            builder.unsupported()
        if words[-1] == "f32":
            builder.unsupported()
        set_half_values(builder, instruction, function, combine, *words[-2:])
        return
    if words[-2] not in ("u32", "s32", "f32"):
        builder.unsupported()
    result, a, b = instruction.operands[:3]
    slot = _compare(builder, words[0], words[-1], a, b, ftz=ftz)
    if combine is not None:
        other = builder.read(instruction.operands[3], BOOL)
        slot = builder.compute(apply2(combine, slot, other))
    dtype = DTYPES[words[-2]]
    true = np.array([1.0 if dtype.kind == "f" else -1], np.float64).astype(SIGNED[4])
    true = true.astype(dtype) if dtype.kind == "f" else true.view(dtype)
    zero = np.zeros(1, dtype)
    builder.assign(result, dtype, apply1(lambda p: np.where(p, true, zero), slot))


def select(builder: Builder, instruction: Instruction) -> None:
    """selp: a where the predicate holds, else b."""
    if len(instruction.modifiers) != 1 or len(instruction.operands) != 4:
        builder.unsupported()
    (kind,) = instruction.modifiers
    if kind not in DTYPES or kind == "pred" or DTYPES[kind].itemsize == 1:
        builder.unsupported()
    result, a, b, predicate = instruction.operands
    dtype: DType = builder.home(result, DTYPES[kind])
    slots = builder.read(a, dtype, bits=True), builder.read(b, dtype, bits=True)
    builder.assign(result, dtype, apply3(np.where, builder.read(predicate, BOOL), *slots))


def select_sign(builder: Builder, instruction: Instruction) -> None:
    """slct: a where c >= 0, else b."""
    words = [word for word in instruction.modifiers if word != "ftz"]
    ftz = len(words) != len(instruction.modifiers)
    if len(words) != 2 or len(instruction.operands) != 4 or words[1] not in ("s32", "f32"):
        builder.unsupported()
    if words[0] not in DTYPES or DTYPES[words[0]].itemsize == 1 or words[0] == "pred":
        builder.unsupported()
    result, a, b, c = instruction.operands
    dtype = builder.home(result, DTYPES[words[0]])
    slots = builder.read(a, dtype, bits=True), builder.read(b, dtype, bits=True)
    sign = builder.read(c, DTYPES[words[1]])

    def holds(value: Array) -> Array:
        found: Array = (flush(value) if ftz else value) >= 0
        return found

    builder.assign(result, dtype, apply3(np.where, builder.compute(apply1(holds, sign)), *slots))


TESTS: dict[str, Callable[[Array], Any]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
    "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
    "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
}


def test_property(builder: Builder, instruction: Instruction) -> None:
    """testp: what kind of number a float is."""
    if len(instruction.modifiers) != 2 or len(instruction.operands) != 2:
        builder.unsupported()
    name, kind = instruction.modifiers
    if name not in TESTS or kind not in ("f32", "f64"):
        builder.unsupported()
    result, a = instruction.operands
    if isinstance(result, Sink):
        return
    builder.assign(result, BOOL, apply1(TESTS[name], builder.read(a, DTYPES[kind])))


HANDLERS = {
    "setp": set_predicate,
    "set": set_value,
    "selp": select,
    "slct": select_sign,
    "testp": test_property,
}
