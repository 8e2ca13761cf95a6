"""cvt: between integers and floats of all sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .builder import Builder
from .closures import apply1
from .directed import integer as directed_integer
from .dtypes import DTYPES, F64, SIGNED, UNSIGNED, Array, DType
from .float_formats import FORMATS
from .lower_pack import convert_packed, is_packed
from .ptx import Instruction, Operand, Register
from .rounding import add_odd, flush, from_bf16, narrow, saturate, to_bf16

INTEGERS = frozenset(f"{kind}{bits}" for kind in "su" for bits in (8, 16, 32, 64))
SCALARS = frozenset({"f16", "bf16", "f32", "f64"})
PRECISION = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
TO_INTEGER: dict[str, Callable[[Array], Any]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
ROUNDINGS = frozenset({"rn", "rz", "rm", "rp"})

Function = Callable[[Array], Array]


def convert(builder: Builder, instruction: Instruction) -> None:
    """cvt: `cvt.rounding.ftz.sat.to.from d, a`, and two floats into a pair."""
    if len(instruction.modifiers) < 2:
        builder.unsupported()
    *words, to, source = instruction.modifiers
    if is_packed(to, source):
        convert_packed(builder, instruction, words, to, source)
        return
    if len(instruction.operands) != 2 or {to, source} - INTEGERS - SCALARS:
        builder.unsupported()
    ftz, sat, relu = "ftz" in words, "sat" in words, "relu" in words
    modes = [word for word in words if word not in ("ftz", "sat", "relu")]
    if len(modes) > 1 or (modes and modes[0] not in {*ROUNDINGS, *TO_INTEGER}):
        builder.unsupported()
    mode = modes[0] if modes else ""
    if ftz and "f32" not in (to, source):
        builder.unsupported()
    if relu and (to not in ("f16", "bf16") or source != "f32"):
        builder.unsupported()
    result, operand = instruction.operands
    slot = _source(builder, operand, source)
    if to in INTEGERS:
        function = _to_integer(builder, to, source, mode, ftz=ftz, sat=sat)
        wide = _wide(builder, result, DTYPES[to])
        if wide != DTYPES[to]:
            function = _then(function, lambda value: value.astype(wide))
        builder.assign(result, wide, apply1(function, slot))
        return
    if source in INTEGERS:
        function = _from_integer(builder, to, source, mode)
        if sat:
            function = _then(function, saturate)
    else:
        function = _between_floats(builder, to, source, mode, ftz=ftz, sat=sat)
    if relu:
        function = _then(lambda value: np.where(value < 0, value.dtype.type(0), value), function)
    builder.assign(result, FORMATS[to].dtype, apply1(function, slot))


def _source(builder: Builder, operand: Operand, kind: str) -> int:
    """The slot of the operand in the dtype of `kind`, cut where its register is wider."""
    dtype = FORMATS[kind].dtype if kind in FORMATS else DTYPES[kind]
    if isinstance(operand, Register) and DTYPES[operand.type].itemsize > dtype.itemsize:
        if kind not in INTEGERS:
            builder.unsupported(f"{operand.name} has type .{operand.type}")
        wide = builder.read(operand, UNSIGNED[DTYPES[operand.type].itemsize])
        return builder.compute(apply1(lambda value: value.astype(dtype), wide))
    return builder.read(operand, dtype)


def _wide(builder: Builder, result: Operand, dtype: DType) -> DType:
    """The dtype of the register that an integer of `dtype` is extended to."""
    if isinstance(result, Register) and DTYPES[result.type].itemsize > dtype.itemsize:
        return (SIGNED if dtype.kind == "i" else UNSIGNED)[DTYPES[result.type].itemsize]
    return dtype


def _then(first: Function, second: Callable[[Array], Any]) -> Function:
    def both(value: Array) -> Array:
        result: Array = second(first(value))
        return result

    return both


def _cast(dtype: DType) -> Function:
    def cast(value: Array) -> Array:
        return value.astype(dtype)

    return cast


def _to_integer(
    builder: Builder, to: str, source: str, mode: str, *, ftz: bool, sat: bool
) -> Function:
    dtype = DTYPES[to]
    bounds = np.iinfo(dtype)
    if source in INTEGERS:
        if mode or ftz:
            builder.unsupported()
        if not sat:
            return _cast(dtype)
        origin = np.iinfo(DTYPES[source])
        low, high = max(bounds.min, origin.min), min(bounds.max, origin.max)
        return lambda value: np.clip(value, low, high).astype(dtype)
    if mode not in TO_INTEGER:
        builder.unsupported()
    # NaN gives 0, but where 64 bits take part the top bit alone (PTX ISA, cvt).
    wide = source == "f64" or dtype.itemsize == 8
    if wide:
        bits = 1 << (8 * dtype.itemsize - 1)
        nan = np.array([bits], UNSIGNED[dtype.itemsize]).view(dtype)
    else:
        nan = np.zeros(1, dtype)
    return _clamped(TO_INTEGER[mode], dtype, nan, _decoder(source, ftz=ftz))


def _decoder(source: str, *, ftz: bool) -> Function:
    """Values of a float type as float64."""

    def decode(value: Array) -> Array:
        if source == "bf16":
            value = from_bf16(value)
        elif source == "f32" and ftz:
            value = flush(value)
        return value.astype(F64)

    return decode


def _clamped(
    rounded: Callable[[Array], Any], dtype: DType, nan: Array, decode: Function
) -> Function:
    bounds = np.iinfo(dtype)
    low, high = float(bounds.min), float(bounds.max)  # float(2**63 - 1) is 2**63
    least, most = dtype.type(bounds.min), dtype.type(bounds.max)

    def convert_value(value: Array) -> Array:
        whole = rounded(decode(value))
        inside = (whole > low) & (whole < high)
        result: Array = np.where(inside, whole, 0.0).astype(dtype)
        if not inside.all():
            result = np.where(whole <= low, least, np.where(whole >= high, most, result))
            result = np.where(np.isnan(whole), nan, result)
        return result

    return convert_value


def _from_integer(builder: Builder, to: str, source: str, mode: str) -> Function:
    if mode not in ROUNDINGS:
        builder.unsupported()
    dtype = DTYPES[source]
    if to in ("f32", "f64") and mode == "rn":
        return _cast(DTYPES[to])
    if to == "f64" and dtype.itemsize == 8:
        return partial(directed_integer, mode=mode)
    exact = _odd_from_64 if dtype.itemsize == 8 else _cast(F64)
    return _then(exact, _narrowing(builder, to, mode))


def _odd_from_64(value: Array) -> Array:
    """64-bit integers as float64 rounded to odd."""
    shift = value.dtype.type(32)
    high = (value >> shift).astype(F64) * 2.0**32
    low = value.astype(np.uint32).astype(F64)
    return add_odd(high, low)


def _narrowing(builder: Builder, to: str, mode: str) -> Function:
    """float64 to a narrower float type, rounded once."""
    if to == "bf16":
        if mode != "rn":
            builder.unsupported()
        return to_bf16
    dtype = DTYPES[to]
    if dtype == F64:
        return _cast(F64)
    return lambda value: narrow(value, dtype, mode)


def _between_floats(
    builder: Builder, to: str, source: str, mode: str, *, ftz: bool, sat: bool
) -> Function:
    narrows = PRECISION[to] < PRECISION[source] or {to, source} == {"f16", "bf16"}
    if narrows != (mode in ROUNDINGS):
        builder.unsupported()
    if mode in TO_INTEGER and to != source:
        builder.unsupported()
    if sat and to == "bf16":
        builder.unsupported()

    def start(value: Array) -> Array:
        if source == "bf16":
            return from_bf16(value)
        return flush(value) if ftz and source == "f32" else value

    function: Function = start
    if mode in TO_INTEGER:
        function = _then(function, TO_INTEGER[mode])
    if to == "bf16" and source == "f32" and mode == "rn":
        return _then(function, to_bf16)
    if to == "bf16" and mode == "rz" and source == "f32":
        return _then(function, _truncated_bf16)
    if narrows:
        function = _then(_then(function, _cast(F64)), _narrowing(builder, to, mode))
    elif to == "bf16":
        function = _then(function, to_bf16)
    else:
        function = _then(function, _cast(DTYPES[to]))
    if sat:
        function = _then(function, saturate)
    if ftz and to == "f32":
        function = _then(function, flush)
    return function


def _truncated_bf16(value: Array) -> Array:
    bits = (np.ascontiguousarray(value).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(value), np.uint16(0x7FFF), bits)


HANDLERS = {"cvt": convert}
