"""cvt to and from pairs of floats of 8 and 16 bits, and to tf32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .builder import Builder
from .closures import apply1, apply2
from .dtypes import F16, F32, F64, UNSIGNED, Array
from .eight_bits import EIGHT_BITS
from .ptx import Instruction
from .rounding import from_bf16, narrow, to_bf16

U8, U16, U32 = UNSIGNED[1], UNSIGNED[2], UNSIGNED[4]
HALVES = frozenset({"f16x2", "bf16x2"})
BYTES = {"e4m3x2": "e4m3", "e5m2x2": "e5m2"}
MODES = frozenset({"rn", "rz", "rna"})
TF32_BITS = 13  # of float32 that tf32 lacks


def is_packed(to: str, source: str) -> bool:
    """Whether a conversion between these types is one of this file."""
    return to in HALVES or to in BYTES or source in BYTES or to == "tf32"


def convert_packed(
    builder: Builder, instruction: Instruction, words: list[str], to: str, source: str
) -> None:
    """The conversion `cvt.words.to.source`."""
    modes = [word for word in words if word in MODES]
    relu, saturate = "relu" in words, "satfinite" in words
    if len(words) != len(modes) + relu + saturate or len(modes) != 1:
        builder.unsupported()
    (mode,) = modes
    if to == "tf32" and source == "f32" and len(instruction.operands) == 2:
        _to_tf32(builder, instruction, mode, relu=relu, saturate=saturate)
    elif to in HALVES and source == "f32" and mode != "rna" and len(instruction.operands) == 3:
        _to_halves(builder, instruction, mode, to, relu=relu, saturate=saturate)
    elif to in BYTES and mode == "rn" and saturate:
        _to_bytes(builder, instruction, to, source, relu=relu)
    elif to == "f16x2" and source in BYTES and mode == "rn" and len(instruction.operands) == 2:
        result, operand = instruction.operands
        decode = EIGHT_BITS[BYTES[source]].decode

        def halves(pair: Array) -> Array:
            values = decode(np.ascontiguousarray(pair).view(U8)).astype(F16)
            return _rectified(values, relu=relu).view(U32)

        builder.assign(result, U32, apply1(halves, builder.read(operand, U16)))
    else:
        builder.unsupported()


def _rectified(values: Array, *, relu: bool) -> Array:
    return np.where(values < 0, values.dtype.type(0), values) if relu else values


def _finite(values: Array, most: float) -> Array:
    """What is beyond the largest number as that number; NaN stays."""
    result: Array = np.clip(values, np.float32(-most), np.float32(most))
    return result


def _to_halves(
    builder: Builder, instruction: Instruction, mode: str, to: str, *, relu: bool, saturate: bool
) -> None:
    result, high, low = instruction.operands
    most = 65504.0 if to == "f16x2" else float(from_bf16(np.array([0x7F7F], np.uint16))[0])
    one = _to_bf16 if to == "bf16x2" else _to_f16

    def part(values: Array) -> Array:
        values = _rectified(values, relu=relu)
        if saturate:
            values = _finite(values, most)
        return one(values, mode).astype(np.uint32)

    def joined(upper: Array, lower: Array) -> Array:
        return (part(upper) << np.uint32(16)) | part(lower)

    slots = builder.read(high, F32), builder.read(low, F32)
    builder.assign(result, U32, apply2(joined, *slots))


def _to_bf16(values: Array, mode: str) -> Array:
    if mode == "rn":
        return to_bf16(values)
    bits = (np.ascontiguousarray(values).view(U32) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), bits)


def _to_f16(values: Array, mode: str) -> Array:
    near = values.astype(F16) if mode == "rn" else narrow(values.astype(F64), F16, mode)
    return np.where(np.isnan(near), np.uint16(0x7FFF), near.view(np.uint16))


def _to_bytes(
    builder: Builder, instruction: Instruction, to: str, source: str, *, relu: bool
) -> None:
    encode = EIGHT_BITS[BYTES[to]].encode
    result, *operands = instruction.operands

    def part(values: Array) -> Array:
        return encode(_rectified(values, relu=relu), saturate=True)

    if source == "f32" and len(operands) == 2:
        high, low = (builder.read(operand, F32) for operand in operands)

        def joined(upper: Array, lower: Array) -> Array:
            return (part(upper).astype(np.uint16) << np.uint16(8)) | part(lower)

        builder.assign(result, U16, apply2(joined, high, low))
    elif source in HALVES and len(operands) == 1:
        decode: Callable[[Array], Array] = from_bf16 if source == "bf16x2" else _from_f16

        def packed(pair: Array) -> Array:
            return part(decode(np.ascontiguousarray(pair).view(U16))).view(U16)

        builder.assign(result, U16, apply1(packed, builder.read(operands[0], U32)))
    else:
        builder.unsupported()


def _from_f16(bits: Array) -> Array:
    return bits.view(F16).astype(F32)


def _to_tf32(
    builder: Builder, instruction: Instruction, mode: str, *, relu: bool, saturate: bool
) -> None:
    """float32 whose last 13 bits are zero."""
    result, operand = instruction.operands
    half = np.uint32(1 << (TF32_BITS - 1))

    def rounded(values: Array) -> Array:
        values = _rectified(values, relu=relu)
        bits = np.ascontiguousarray(values).view(U32)
        if mode == "rna":
            bits = bits + half
        elif mode == "rn":
            bits = bits + (half - np.uint32(1)) + ((bits >> np.uint32(TF32_BITS)) & np.uint32(1))
        found = (bits & np.uint32(0xFFFFE000)).view(F32)
        if saturate:
            found = _finite(found, float(np.array([0x7F7FE000], U32).view(F32)[0]))
        return np.where(np.isfinite(values), found, values)

    builder.assign(result, F32, apply1(rounded, builder.read(operand, F32)))
