"""Instructions that few kernels hold, against exact numbers and definitions."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel

Array = np.ndarray[Any, Any]
One = Callable[..., Array]
Run = Callable[..., LaunchReport]
Build = Callable[..., Kernel]
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
words = st.integers(0, 2**32 - 1)
doubles = st.floats(allow_nan=False, allow_infinity=False, width=64)
singles = st.floats(allow_nan=False, allow_infinity=False, width=32)


def array(kind: str, *values: Any) -> Array:
    return np.array(values, kind)


def neighbours(value: float) -> tuple[float, float]:
    return math.nextafter(value, -math.inf), math.nextafter(value, math.inf)


# --- rounding in one direction -------------------------------------------------------------------
EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@quick
@given(a=doubles, b=doubles)
def test_doubles_are_rounded_in_the_direction_asked_for(
    one: One, name: str, mode: str, a: float, b: float
) -> None:
    if name == "div" and b == 0:
        return
    (got,) = one(f"{name}.{mode}.f64 %d, %a, %b;", [array("f8", a), array("f8", b)], "f8")
    exact = EXACT[name](Fraction(a), Fraction(b))
    if not np.isfinite(got):
        assert mode != "rz"
        assert abs(exact) > Fraction(np.finfo(np.float64).max)
        return
    below, above = neighbours(float(got))
    if mode == "rm" or (mode == "rz" and exact >= 0):
        assert Fraction(float(got)) <= exact
        assert above == np.inf or Fraction(above) > exact
    else:
        assert Fraction(float(got)) >= exact
        assert below == -np.inf or Fraction(below) < exact


@pytest.mark.parametrize(("mode", "low"), [("rm", True), ("rz", True), ("rp", False)])
@quick
@given(a=st.floats(2.0**-1000, 2.0**1000))
def test_roots_are_rounded_in_the_direction_asked_for(
    one: One, mode: str, low: bool, a: float
) -> None:
    (got,) = one(f"sqrt.{mode}.f64 %d, %a;", [array("f8", a)], "f8")
    below, above = neighbours(float(got))
    if low:
        assert Fraction(float(got)) ** 2 <= Fraction(a) < Fraction(above) ** 2
    else:
        assert Fraction(below) ** 2 < Fraction(a) <= Fraction(float(got)) ** 2


# --- floats of eight bits ------------------------------------------------------------------------
def eight(kind: str, code: int) -> float:
    """The value of a code, from the definition of the formats (OCP OFP8)."""
    fraction_bits, bias = (3, 7) if kind == "e4m3" else (2, 15)
    sign = -1.0 if code & 128 else 1.0
    exponent, fraction = (code & 127) >> fraction_bits, code & ((1 << fraction_bits) - 1)
    if kind == "e4m3" and code & 127 == 127:
        return float("nan")
    if kind == "e5m2" and exponent == 31:
        return float("nan") if fraction else sign * float("inf")
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias - fraction_bits)
    return sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_all_codes_of_eight_bits_become_halves(one: One, kind: str) -> None:
    codes = np.arange(256, dtype=np.uint16)
    got = one(f"cvt.rn.f16x2.{kind}x2 %d, %a;", [codes | (codes << np.uint16(8))], "u4")
    wanted = np.array([eight(kind, code) for code in range(256)]).astype(np.float16)
    halves = got.view(np.float16).reshape(-1, 2)
    assert np.array_equal(halves, np.stack([wanted, wanted], 1), equal_nan=True)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
@quick
@given(a=st.floats(-70000, 70000, width=32), b=st.floats(-2, 2, width=32))
def test_floats_become_the_nearest_code_of_eight_bits(
    one: One, kind: str, a: float, b: float
) -> None:
    text = f"cvt.rn.satfinite.{kind}x2.f32 %d, %a, %b;"
    (got,) = one(text, [array("f4", a), array("f4", b)], "u2")
    codes = [code for code in range(256) if np.isfinite(eight(kind, code))]
    for value, code in ((a, int(got) >> 8), (b, int(got) & 255)):
        errors = {other: abs(Fraction(eight(kind, other)) - Fraction(value)) for other in codes}
        least = min(errors.values())
        assert errors[code] == least
        ties = {eight(kind, other) for other, error in errors.items() if error == least}
        assert len(ties) == 1 or code % 2 == 0


@quick
@given(a=singles)
def test_tf32_is_the_nearest_with_ties_away_from_zero(one: One, a: float) -> None:
    (got,) = one("cvt.rna.tf32.f32 %d, %a;", [array("f4", a)], "f4")
    if not np.isfinite(got):
        return
    (bits,) = struct.unpack("<I", struct.pack("<f", got))
    assert bits & 0x1FFF == 0
    (below,) = struct.unpack(
        "<f", struct.pack("<I", (bits & 0x7FFFFFFF) - (bits & 0x7FFFFFFF and 0x2000))
    )
    (above,) = struct.unpack("<f", struct.pack("<I", (bits & 0x7FFFFFFF) + 0x2000))
    error = abs(Fraction(float(got)) - Fraction(a))
    assert error <= abs(Fraction(below) - abs(Fraction(a)))
    if np.isfinite(above):
        assert error < abs(Fraction(above) - abs(Fraction(a)))


# --- bits and small integers ---------------------------------------------------------------------
MODES = {
    "f4e": lambda b, n: b[n : n + 4],
    "b4e": lambda b, n: [b[n], b[(n - 1) % 8], b[(n - 2) % 8], b[(n - 3) % 8]],
    "rc8": lambda b, n: [b[n]] * 4,
    "ecl": lambda b, n: [b[max(i, n)] for i in range(4)],
    "ecr": lambda b, n: [b[min(i, n)] for i in range(4)],
    "rc16": lambda b, n: [b[2 * (n & 1)], b[2 * (n & 1) + 1]] * 2,
}


@pytest.mark.parametrize("mode", sorted(MODES))
@quick
@given(a=words, b=words, c=words)
def test_prmt_permutes_by_its_mode(one: One, mode: str, a: int, b: int, c: int) -> None:
    inputs = [array("u4", value) for value in (a, b, c)]
    (got,) = one(f"prmt.b32.{mode} %d, %a, %b, %c;", inputs, "u4")
    raw = list(struct.pack("<II", a, b))
    assert struct.pack("<I", got) == bytes(MODES[mode](raw, c & 3))


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits and value >> (bits - 1) else value


@quick
@given(a=words, b=st.integers(0, 70))
def test_szext_and_bmsk_follow_their_lengths(one: One, a: int, b: int) -> None:
    inputs = [array("u4", a), array("u4", b)]
    for mode, bits in (("clamp", min(b, 32)), ("wrap", b & 31)):
        (got,) = one(f"szext.{mode}.s32 %d, %a, %b;", inputs, "i4")
        assert got == signed(a, bits)
        (got,) = one(f"szext.{mode}.u32 %d, %a, %b;", inputs, "u4")
        assert got == a & ((1 << bits) - 1)
        start = min(a & 63, 32) if mode == "clamp" else a & 31
        (got,) = one(f"bmsk.{mode}.b32 %d, %a, %b;", [array("u4", a & 63), array("u4", b)], "u4")
        assert got == (((1 << bits) - 1) << start) & 0xFFFFFFFF


@quick
@given(a=words, b=words, c=words)
def test_dot_products_and_24_bit_products(one: One, a: int, b: int, c: int) -> None:
    inputs = [array("u4", value) for value in (a, b, c)]
    left, right = struct.unpack("<4b", struct.pack("<I", a)), struct.pack("<I", b)
    (got,) = one("dp4a.s32.u32 %d, %a, %b, %c;", inputs, "u4")
    assert got == (sum(x * y for x, y in zip(left, right, strict=True)) + c) % 2**32
    halves = struct.unpack("<2h", struct.pack("<I", a))
    (got,) = one("dp2a.hi.s32.u32 %d, %a, %b, %c;", inputs, "u4")
    assert got == (halves[0] * right[2] + halves[1] * right[3] + c) % 2**32
    product = signed(a, 24) * signed(b, 24)
    (got,) = one("mad24.hi.s32 %d, %a, %b, %c;", inputs, "u4")
    assert got == ((product >> 16) + c) % 2**32
    (got,) = one("mul24.lo.u32 %d, %a, %b;", inputs, "u4")
    assert got == (a & 0xFFFFFF) * (b & 0xFFFFFF) % 2**32
    (got,) = one("max.s16x2 %d, %a, %b;", inputs, "u4")
    pairs = zip(halves, struct.unpack("<2h", struct.pack("<I", b)), strict=True)
    assert got == struct.unpack("<I", struct.pack("<2h", *(max(pair) for pair in pairs)))[0]


# --- pairs of halves -----------------------------------------------------------------------------
def halves(*values: float) -> Array:
    return np.array(values, np.float16).view(np.uint32)


def test_pairs_of_halves_are_compared_each_on_its_own(one: One) -> None:
    a = halves(1, 2, float("nan"), 4, -0.0, 5)
    b = halves(2, 1, 1, 4, 0.0, float("nan"))
    got = one("set.lt.f16x2.f16x2 %d, %a, %b;", [a, b], "u4").view(np.float16)
    assert got.tolist() == [1, 0, 0, 0, 0, 0]
    got = one("set.equ.u32.f16x2 %d, %a, %b;", [a, b], "u4").view(np.uint16)
    assert got.tolist() == [0, 0, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF]
    text = "setp.ge.f16x2 %q|%r, %a, %b; selp.b32 %d, 1, 0, %q; selp.b32 %v, 2, 0, %r;"
    got = one(
        text + "or.b32 %d, %d, %v;", [a, b], "u4", declarations=".reg .pred %q, %r; .reg .b32 %v;"
    )
    assert got.tolist() == [2, 2, 1]


def test_relu_and_signs_of_pairs(one: One) -> None:
    a, b = halves(-3, 2, 1, -1), halves(1, 2, 3, 4)
    got = one("fma.rn.relu.f16x2 %d, %a, %b, %a;", [a, b], "u4").view(np.float16)
    assert got.tolist() == [0, 6, 4, 0]
    got = one("max.xorsign.abs.f16x2 %d, %a, %b;", [a, b], "u4").view(np.float16)
    assert got.tolist() == [-3, 2, 3, -4]


def test_pairs_of_floats_are_added_and_rounded_each(one: One) -> None:
    a, b = (np.array(v, np.float32).view(np.uint64) for v in ([1, 2**-30], [2**-30, 1]))
    got = one("add.rp.f32x2 %d, %a, %b;", [a, b], "u8").view(np.float32)
    assert got.tolist() == [1 + 2**-23] * 2
    got = one("fma.rn.f32x2 %d, %a, %b, %b;", [a, b], "u8").view(np.float32)
    assert got.tolist() == [2**-29, 1]


# --- warps and atomics ---------------------------------------------------------------------------
def test_match_all_tells_whether_one_value_is_everywhere(one: One) -> None:
    values = np.array([7] * 32 + [7] * 31 + [8], np.uint32)
    text = "match.all.sync.b32 %d|%q, %a, -1; @%q add.u32 %d, %d, 1;"
    got = one(text, [values], "u4", declarations=".reg .pred %q;")
    assert got.tolist() == [0] * 64


def test_elect_chooses_one_lane(one: One) -> None:
    values = np.zeros(64, np.uint32)
    text = "mov.u32 %m, 0xffffffff; elect.sync %v|%q, %m; selp.b32 %d, 1, 0, %q;"
    got = one(text, [values], "u4", declarations=".reg .pred %q; .reg .b32 %v, %m;")
    assert np.flatnonzero(got).tolist() == [0, 32]


def test_floats_are_reduced_over_a_warp(one: One) -> None:
    values = np.linspace(-3, 5, 64, dtype=np.float32)
    values[40] = np.nan
    (low, high) = values[:32], values[32:]
    got = one("redux.sync.max.f32 %d, %a, -1;", [values], "f4")
    assert got.tolist() == [float(low.max())] * 32 + [float(np.nanmax(high))] * 32
    got = one("redux.sync.min.abs.NaN.f32 %d, %a, -1;", [values], "f4")
    assert got[:32].tolist() == [float(np.abs(low).min())] * 32
    assert np.isnan(got[32:]).all()


def test_atomics_add_halves_and_vectors(build: Build, run: Run) -> None:
    pair, wide = np.zeros(2, np.float16), np.zeros(4, np.float32)
    body = """mov.b32 %v, 0x3c004000;
    red.global.add.noftz.f16x2 [%p0], %v;
    mov.f32 %f, 1.5; red.global.add.v4.f32 [%p1], {%f, %f, %f, %f};"""
    kernel = build(body, 2, ".reg .b32 %v; .reg .f32 %f;")
    report = run(kernel, 1, 64, [Buffer("pair", pair), Buffer("wide", wide)])
    assert report.accesses == ()
    assert pair.tolist() == [128, 64]
    assert wide.tolist() == [96] * 4


def test_only_atomics_to_global_memory_flush_subnormals(build: Build, run: Run) -> None:
    tiny = np.float32(2.0**-140)
    out = np.full(2, tiny)
    body = """mov.u32 %s, cell; ld.global.f32 %f, [%p0]; st.shared.f32 [%s], %f;
    atom.shared.add.f32 %g, [%s], %f; ld.shared.f32 %g, [%s]; st.global.f32 [%p0+4], %g;
    red.global.add.f32 [%p0], %f;"""
    declarations = ".shared .align 4 .b8 cell[4]; .reg .f32 %f, %g; .reg .b32 %s;"
    run(build(body, 1, declarations), 1, 1, [Buffer("out", out)])
    assert out.tolist() == [0.0, 2.0**-139]


# --- literals ------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["1.5", "0.1", "-2.25", "1.0e-3", "3e2", "1.5E+3"])
def test_decimal_literals_are_the_nearest_floats(one: One, text: str) -> None:
    zero = array("f4", 0)
    (got,) = one(f"add.f32 %d, %a, {text};", [zero], "f4")
    assert got == np.float32(float(text))
    (got,) = one(f"add.f64 %d, %a, {text};", [array("f8", 0)], "f8")
    assert got == float(text)
