"""cvt and packing moves, against exact fractions and Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]
One = Callable[..., Array]
Nearest = Callable[..., float]
quick = settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
INF, NAN = math.inf, math.nan


def floats(width: int) -> st.SearchStrategy[list[float]]:
    number = st.floats(width=width, allow_nan=False, allow_infinity=False)
    return st.lists(number, min_size=24, max_size=24)


def same(got: Array, wanted: list[float]) -> None:
    """Equal as numbers, with their signs."""
    found = got.astype(np.float64).tolist()
    assert found == wanted
    assert [math.copysign(1, x) for x in found if x] == [math.copysign(1, x) for x in wanted if x]


def as_bf16(values: list[float]) -> Array:
    """Bits of the bfloat16 that truncation gives."""
    return (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


@quick
@given(a=floats(32), modes=st.sampled_from(["rn", "rz", "rm", "rp"]))
def test_f32_narrows_to_f16_with_one_rounding(
    one: One, nearest: Nearest, a: list[float], modes: str
) -> None:
    source = np.array(a, np.float32)
    got = one(f"cvt.{modes}.f16.f32 %d, %a;", [source], np.float16)
    same(got, [nearest(Fraction(x), "f16", modes) for x in a])


@quick
@given(a=floats(64), mode=st.sampled_from(["rn", "rz", "rm", "rp"]))
def test_f64_narrows_to_f32_with_one_rounding(
    one: One, nearest: Nearest, a: list[float], mode: str
) -> None:
    got = one(f"cvt.{mode}.f32.f64 %d, %a;", [np.array(a)], np.float32)
    same(got, [nearest(Fraction(x), "f32", mode) for x in a])


@quick
@given(a=floats(32), b=floats(32))
def test_f32_becomes_bf16_and_pairs(
    one: One, nearest: Nearest, a: list[float], b: list[float]
) -> None:
    sources = [np.array(values, np.float32) for values in (a, b)]
    got = one("cvt.rn.bf16.f32 %d, %a;", sources[:1], np.uint16)
    same(from_bf16(got), [nearest(Fraction(x), "bf16") for x in a])
    both = one("cvt.rn.bf16x2.f32 %d, %a, %b;", sources, np.uint32).view(np.uint16)
    same(from_bf16(both[1::2]), [nearest(Fraction(x), "bf16") for x in a])
    same(from_bf16(both[::2]), [nearest(Fraction(x), "bf16") for x in b])
    halves = one("cvt.rn.f16x2.f32 %d, %a, %b;", sources, np.uint32).view(np.float16)
    same(halves[1::2], [nearest(Fraction(x), "f16") for x in a])
    same(halves[::2], [nearest(Fraction(x), "f16") for x in b])
    wide = one("cvt.f32.bf16 %d, %a;", [as_bf16(a)], np.float32)
    same(wide, from_bf16(as_bf16(a)).tolist())


INTEGERS = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("source", ["f32", "f64"])
@quick
@given(data=st.data())
def test_floats_become_integers_clamped(
    one: One, to: str, source: str, data: st.DataObject
) -> None:
    bits, width = int(to[1:]), int(source[1:])
    low = -(1 << (bits - 1)) if to[0] == "s" else 0
    high = (1 << (bits - 1 if to[0] == "s" else bits)) - 1
    near = st.integers(-5, 5).map(lambda n: float(np.float32(high)) + n / 2)
    values = data.draw(
        st.lists(st.one_of(st.floats(width=32, allow_nan=False), near), min_size=16, max_size=16)
    )
    values = [*np.array([*values, 0.5, 1.5, -2.5, INF, -INF], f"f{width // 8}").tolist()]
    size = max(2, bits // 8)
    for mode, function in (
        ("rni", round),
        ("rzi", math.trunc),
        ("rmi", math.floor),
        ("rpi", math.ceil),
    ):
        got = one(
            f"cvt.{mode}.{to}.{source} %d, %a;",
            [np.array(values, f"f{width // 8}")],
            f"{'i' if to[0] == 's' else 'u'}{size}",
        )
        wanted = [
            max(low, min(high, function(x))) if math.isfinite(x) else (high if x > 0 else low)
            for x in values
        ]
        assert got.tolist() == wanted


def test_nan_becomes_zero_or_the_top_bit(one: One) -> None:
    a = np.array([NAN], np.float32)
    assert one("cvt.rzi.s32.f32 %d, %a;", [a], "i4").tolist() == [0]
    assert one("cvt.rzi.u64.f32 %d, %a;", [a], "u8").tolist() == [1 << 63]
    assert one("cvt.rzi.s32.f64 %d, %a;", [a.astype("f8")], "i4").tolist() == [-(1 << 31)]


@pytest.mark.parametrize("source", ["s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("to", ["f16", "bf16", "f32"])
@quick
@given(data=st.data())
def test_integers_become_floats_with_one_rounding(
    one: One, nearest: Nearest, to: str, source: str, data: st.DataObject
) -> None:
    bits = int(source[1:])
    low = -(1 << (bits - 1)) if source[0] == "s" else 0
    numbers = st.integers(low, low + (1 << bits) - 1)
    values = data.draw(st.lists(numbers, min_size=16, max_size=16))
    dtype = f"{'i' if source[0] == 's' else 'u'}{bits // 8}"
    size = "u2" if to == "bf16" else f"f{int(to[1:]) // 8}"
    for mode in ["rn"] if to == "bf16" else ["rn", "rz", "rm", "rp"]:
        got = one(f"cvt.{mode}.{to}.{source} %d, %a;", [np.array(values, dtype)], size)
        numbers_got = from_bf16(got) if to == "bf16" else got
        same(numbers_got, [nearest(Fraction(x), to, mode) for x in values])


@quick
@given(values=st.lists(st.integers(0, (1 << 32) - 1), min_size=16, max_size=16))
def test_integers_are_cut_extended_and_saturated(one: One, values: list[int]) -> None:
    a = np.array(values, np.uint32)
    numbers = a.view(np.int32).tolist()
    byte = [(x & 255) - 256 * (x >> 7 & 1) for x in values]
    assert one("cvt.s32.s8 %d, %a;", [a], "i4").tolist() == byte
    assert one("cvt.u32.u16 %d, %a;", [a], "u4").tolist() == [x & 65535 for x in values]
    assert one("cvt.s64.s32 %d, %a;", [a], "i8").tolist() == numbers
    assert one("cvt.u64.u32 %d, %a;", [a], "u8").tolist() == values
    assert one("cvt.sat.s16.s32 %d, %a;", [a], "i2").tolist() == [
        max(-32768, min(32767, x)) for x in numbers
    ]
    assert one("cvt.sat.u8.s32 %d, %a;", [a], "u4").tolist() == [
        max(0, min(255, x)) for x in numbers
    ]


def test_floats_round_to_whole_floats(one: One) -> None:
    a = np.array([-2.5, -0.5, 0.5, 1.5, 2.5, 7.9], np.float32)
    assert one("cvt.rni.f32.f32 %d, %a;", [a], "f4").tolist() == [round(x) for x in a.tolist()]
    assert one("cvt.rmi.f32.f32 %d, %a;", [a], "f4").tolist() == [-3, -1, 0, 1, 2, 7]
    assert one("cvt.sat.f32.f32 %d, %a;", [a], "f4").tolist() == [0, 0, 0.5, 1, 1, 1]


def test_vectors_pack_and_unpack(one: One) -> None:
    a, b = np.array([0x11223344, 5], np.uint32), np.array([0xAABBCCDD, 6], np.uint32)
    assert one("mov.b64 %d, {%a, %b};", [a, b], "u8").tolist() == [
        y << 32 | x for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    code = "mov.b32 {%x, %y}, %a; mov.b32 %d, {%y, %x};"
    assert one(code, [a], "u4", declarations=".reg .b16 %x, %y;").tolist() == [
        0x33441122,
        5 << 16,
    ]
