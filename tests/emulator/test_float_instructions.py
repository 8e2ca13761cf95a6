"""Float instructions against exact fractions, rounded by a few lines of conftest."""

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
    if width == 16:
        patterns = st.integers(0, 65535).filter(lambda bits: bits & 0x7C00 != 0x7C00)
        return st.lists(
            patterns.map(lambda bits: float(np.array([bits], np.uint16).view(np.float16)[0])),
            min_size=24,
            max_size=24,
        )
    number = st.floats(width=width, allow_nan=False, allow_infinity=False)
    near_one = st.integers(-(1 << 12), 1 << 12).map(lambda n: float(np.float16(1 + n / (1 << 10))))
    return st.lists(st.one_of(number, near_one), min_size=24, max_size=24)


def same(got: Array, wanted: list[float]) -> None:
    """Equal as numbers, infinities and zeros with their sign."""
    found = got.astype(np.float64).tolist()
    assert found == wanted
    assert [math.copysign(1, x) for x in found if x] == [math.copysign(1, x) for x in wanted if x]


def test_fma_rounds_once_where_float64_would_round_twice(one: One) -> None:
    a = np.array([1 + 2.0**-12], np.float32)
    c = np.array([2.0**-60], np.float32)
    exact = Fraction(float(a[0])) ** 2 + Fraction(float(c[0]))
    got = one("fma.rn.f32 %d, %a, %a, %b;", [a, c], np.float32)
    # The product is the middle of two floats; c tips it upwards.
    above = np.float32(1 + 2.0**-11 + 2.0**-23)
    assert Fraction(float(above)) - exact < exact - Fraction(1 + 2.0**-11)
    assert got[0] == above
    assert np.float32(np.float64(a[0]) * a[0] + c[0]) != above


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@quick
@given(a=floats(32), b=floats(32), c=floats(32))
def test_f32_arithmetic_rounds_the_exact_result(
    one: One, nearest: Nearest, mode: str, a: list[float], b: list[float], c: list[float]
) -> None:
    sources = [np.array(values, np.float32) for values in (a, b, c)]
    exact = [tuple(map(Fraction, each)) for each in zip(a, b, c, strict=True)]
    for code, function in (
        (f"add.{mode}.f32 %d, %a, %b;", lambda x, y, z: x + y),
        (f"sub.{mode}.f32 %d, %a, %b;", lambda x, y, z: x - y),
        (f"mul.{mode}.f32 %d, %a, %b;", lambda x, y, z: x * y),
        (f"fma.{mode}.f32 %d, %a, %b, %c;", lambda x, y, z: x * y + z),
    ):
        got = one(code, sources, np.float32)
        same(got, [nearest(function(*each), "f32", mode) for each in exact])


@quick
@given(a=floats(64), b=floats(64), c=floats(64))
def test_f64_fma_rounds_the_exact_result(
    one: One, a: list[float], b: list[float], c: list[float]
) -> None:
    got = one("fma.rn.f64 %d, %a, %b, %c;", [np.array(v) for v in (a, b, c)], np.float64)
    wanted = []
    for x, y, z in zip(a, b, c, strict=True):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        try:
            wanted.append(float(exact))
        except OverflowError:
            wanted.append(INF if exact > 0 else -INF)
    same(got, wanted)


def test_f64_fma_of_halves_cancels_exactly(one: One) -> None:
    a, b = np.array([1 + 2.0**-30, 1e300]), np.array([1 - 2.0**-30, 1e-300])
    c = np.array([-1.0, -1.0])
    got = one("fma.rn.f64 %d, %a, %b, %c;", [a, b, c], np.float64)
    assert got.tolist() == [
        float(Fraction(x) * Fraction(y) - 1) for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert got[0] == -(2.0**-60)


@quick
@given(a=floats(16), b=floats(16), c=floats(16))
def test_f16_arithmetic_rounds_the_exact_result(
    one: One, nearest: Nearest, a: list[float], b: list[float], c: list[float]
) -> None:
    sources = [np.array(values, np.float16) for values in (a, b, c)]
    exact = [tuple(map(Fraction, map(float, each))) for each in zip(*sources, strict=True)]
    for code, function in (
        ("add.f16 %d, %a, %b;", lambda x, y, z: x + y),
        ("sub.rn.f16 %d, %a, %b;", lambda x, y, z: x - y),
        ("mul.f16 %d, %a, %b;", lambda x, y, z: x * y),
        ("fma.rn.f16 %d, %a, %b, %c;", lambda x, y, z: x * y + z),
    ):
        same(one(code, sources, np.float16), [nearest(function(*each), "f16") for each in exact])
        # The same in pairs: every half of a 32-bit register is a number of its own.
        pairs = [values.view(np.uint32) for values in sources]
        packed = one(code.replace(".f16", ".f16x2"), pairs, np.uint32).view(np.float16)
        same(packed, [nearest(function(*each), "f16") for each in exact])


def as_bf16(values: list[float]) -> Array:
    """Bits of the bfloat16 that truncation gives."""
    return (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


@quick
@given(a=floats(32), b=floats(32), c=floats(32))
def test_bf16_fma_rounds_the_exact_result(
    one: One, nearest: Nearest, a: list[float], b: list[float], c: list[float]
) -> None:
    sources = [as_bf16(values) for values in (a, b, c)]
    numbers = [from_bf16(bits).tolist() for bits in sources]
    wanted = [
        nearest(Fraction(x) * Fraction(y) + Fraction(z), "bf16")
        for x, y, z in zip(*numbers, strict=True)
    ]
    got = one("fma.rn.bf16 %d, %a, %b, %c;", sources, np.uint16)
    same(from_bf16(got), wanted)
    pairs = [bits.view(np.uint32) for bits in sources]
    got = one("fma.rn.bf16x2 %d, %a, %b, %c;", pairs, np.uint32).view(np.uint16)
    same(from_bf16(got), wanted)


def test_ftz_flushes_subnormal_operands_and_results(one: One) -> None:
    tiny = float(np.finfo(np.float32).tiny)
    a = np.array([tiny / 2, -tiny / 2, tiny, 1.0], np.float32)
    b = np.array([1.0, 1.0, 0.5, 2.0], np.float32)
    plain = one("mul.rn.f32 %d, %a, %b;", [a, b], np.float32)
    flushed = one("mul.rn.ftz.f32 %d, %a, %b;", [a, b], np.float32)
    assert plain.tolist() == [tiny / 2, -tiny / 2, tiny / 2, 2.0]
    assert flushed.tolist() == [0.0, -0.0, 0.0, 2.0]
    assert np.signbit(flushed).tolist() == [False, True, False, False]
    code = "setp.gt.ftz.f32 %q, %a, 0f00000000; selp.b32 %d, 1, 0, %q;"
    assert one(code, [a], "i4", declarations=".reg .pred %q;").tolist() == [0, 0, 1, 1]


def test_saturation_clamps_and_turns_nan_into_zero(one: One) -> None:
    a = np.array([-1.0, 0.25, 2.0, NAN], np.float32)
    got = one("add.sat.f32 %d, %a, 0f00000000;", [a], np.float32)
    assert got.tolist() == [0.0, 0.25, 1.0, 0.0]


def test_minimum_and_maximum_prefer_numbers_and_order_zeros(one: One) -> None:
    a = np.array([1.0, NAN, NAN, 0.0, -0.0, -INF], np.float32)
    b = np.array([NAN, 2.0, NAN, -0.0, 0.0, 3.0], np.float32)
    least = one("min.f32 %d, %a, %b;", [a, b], np.float32)
    most = one("max.f32 %d, %a, %b;", [a, b], np.float32)
    assert least[[0, 1, 5]].tolist() == [1.0, 2.0, -INF]
    assert most[[0, 1, 5]].tolist() == [1.0, 2.0, 3.0]
    assert least.view(np.uint32)[2] == 0x7FFFFFFF
    assert np.signbit(least[3:5]).all()
    assert not np.signbit(most[3:5]).any()
    both = one("max.NaN.f32 %d, %a, %b;", [a, b], np.float32)
    assert np.isnan(both[:3]).all()
    assert both[5] == 3.0


def test_computed_nan_has_the_bits_of_a_device_and_a_loaded_one_keeps_its_own(one: One) -> None:
    a = np.array([0.0, INF], np.float32)
    got = one("mul.rn.f32 %d, %a, %b;", [a, a[::-1].copy()], np.uint32)
    assert got.tolist() == [0x7FFFFFFF] * 2
    seen = one("mul.rn.f32 %w, %a, %b; shr.u32 %d, %w, 31;", [a, a[::-1].copy()], np.uint32)
    assert seen.tolist() == [0, 0]
    odd = np.array([0xFFC01234], np.uint32)
    assert one("mov.f32 %d, %a;", [odd], np.uint32).tolist() == odd.tolist()


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_unordered_comparisons_hold_for_nan_and_ordered_ones_do_not(
    one: One, name: str, dtype: Any
) -> None:
    values = [-INF, -1.0, -0.0, 0.0, 1.0, NAN]
    pairs = [(x, y) for x in values for y in values]
    a, b = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    kind = f"f{8 * np.dtype(dtype).itemsize}"
    holds = {
        "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y,
        "gt": lambda x, y: x > y,
        "ge": lambda x, y: x >= y,
        "eq": lambda x, y: x == y,
        "ne": lambda x, y: x != y,
    }[name]
    for suffix, of_nan in (("", False), ("u", True)):
        code = f"setp.{name}{suffix}.{kind} %q, %a, %b; selp.b32 %d, 1, 0, %q;"
        got = one(code, [a, b], "i4", declarations=".reg .pred %q;")
        assert got.tolist() == [int(of_nan if x != x or y != y else holds(x, y)) for x, y in pairs]
    for test, wanted in (("num", True), ("nan", False)):
        code = f"setp.{test}.{kind} %q, %a, %b; selp.b32 %d, 1, 0, %q;"
        got = one(code, [a, b], "i4", declarations=".reg .pred %q;")
        assert got.tolist() == [int((x == x and y == y) == wanted) for x, y in pairs]


@pytest.mark.parametrize(
    ("code", "function"),
    [
        ("ex2.approx.f32 %d, %a;", lambda x: 2.0**x),
        ("ex2.approx.ftz.f32 %d, %a;", lambda x: 2.0**x),
        ("lg2.approx.f32 %d, %a;", math.log2),
        ("sin.approx.f32 %d, %a;", math.sin),
        ("cos.approx.f32 %d, %a;", math.cos),
        ("tanh.approx.f32 %d, %a;", math.tanh),
        ("rcp.rn.f32 %d, %a;", lambda x: 1 / x),
        ("rcp.approx.ftz.f32 %d, %a;", lambda x: 1 / x),
        ("sqrt.rn.f32 %d, %a;", math.sqrt),
        ("rsqrt.approx.f32 %d, %a;", lambda x: 1 / math.sqrt(x)),
        ("div.full.f32 %d, 0f40400000, %a;", lambda x: 3 / x),
        ("div.rn.f32 %d, 0f40400000, %a;", lambda x: 3 / x),
        ("neg.f32 %d, %a;", lambda x: -x),
        ("copysign.f32 %d, 0fBF800000, %a;", lambda x: -x),
    ],
)
def test_functions_of_one_float_are_near_the_real_ones(
    one: One, code: str, function: Callable[[float], float]
) -> None:
    a = np.array([0.01, 0.5, 1.0, 1.75, 3.0, 20.0], np.float32)
    got = one(code, [a], np.float32)
    np.testing.assert_allclose(got, [function(x) for x in a.tolist()], rtol=3e-7, atol=1e-12)


def test_f64_division_is_that_of_the_host(one: One) -> None:
    a = np.array([3.0, -0.1, 1e-300])
    assert one("div.rn.f64 %d, %a, %b;", [a, a[::-1].copy()], np.float64).tolist() == [
        x / y for x, y in zip(a.tolist(), a[::-1].tolist(), strict=True)
    ]


def test_gross_f64_approximations_count_the_upper_half_of_the_bits(one: One) -> None:
    """The seeds of Newton iterations: PTX ISA, rcp.approx.ftz.f64."""
    a = np.array([3.0, np.nextafter(3.0, 4.0), -0.1, 1e-310, math.inf])
    got = one("rcp.approx.ftz.f64 %d, %a;", [a], np.float64)
    assert got[0] == got[1]
    assert got[3:].tolist() == [math.inf, 0.0]
    assert not (got.view(np.uint64) & np.uint64(0xFFFFFFFF)).any()
    np.testing.assert_allclose(got[:3], 1 / a[:3], rtol=2.0**-19)


def test_properties_of_floats(one: One) -> None:
    a = np.array([0.0, 1e-40, 1.0, INF, NAN], np.float32)
    for name, wanted in {
        "finite": [1, 1, 1, 0, 0],
        "infinite": [0, 0, 0, 1, 0],
        "number": [1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 1],
        "normal": [0, 0, 1, 0, 0],
        "subnormal": [0, 1, 0, 0, 0],
    }.items():
        code = f"testp.{name}.f32 %q, %a; selp.b32 %d, 1, 0, %q;"
        assert one(code, [a], "i4", declarations=".reg .pred %q;").tolist() == wanted
