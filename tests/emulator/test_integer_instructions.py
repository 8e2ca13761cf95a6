"""Integer instructions against Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]
One = Callable[..., Array]
quick = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def bits_of(count: int) -> st.SearchStrategy[list[int]]:
    """32 patterns of `count` bits, borders among them."""
    borders = [0, 1, (1 << count) - 1, 1 << (count - 1), (1 << (count - 1)) - 1]
    value = st.one_of(st.sampled_from(borders), st.integers(0, (1 << count) - 1))
    return st.lists(value, min_size=32, max_size=32)


def array(values: list[int], bits: int) -> Array:
    return np.array(values, f"u{bits // 8}")


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def as_type(value: int, kind: str) -> int:
    """A bit pattern as the number that type `kind` sees."""
    bits = int(kind[1:])
    return signed(value, bits) if kind[0] == "s" else value & ((1 << bits) - 1)


def quotient(a: int, b: int) -> int:
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


TWO: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, n: a + b,
    "sub": lambda a, b, n: a - b,
    "mul.lo": lambda a, b, n: a * b,
    "mul.hi": lambda a, b, n: (a * b) >> n,
    "div": lambda a, b, n: quotient(a, b) if b else -1,
    "rem": lambda a, b, n: a - b * quotient(a, b) if b else a,
    "min": lambda a, b, n: min(a, b),
    "max": lambda a, b, n: max(a, b),
}


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("name", TWO)
@quick
@given(data=st.data())
def test_two_operand_arithmetic_wraps_as_python_modulo(
    one: One, name: str, kind: str, data: st.DataObject
) -> None:
    bits = int(kind[1:])
    a, b = data.draw(bits_of(bits)), data.draw(bits_of(bits))
    got = one(f"{name}.{kind} %d, %a, %b;", [array(a, bits), array(b, bits)], f"u{bits // 8}")
    mask = (1 << bits) - 1
    wanted = [
        TWO[name](as_type(x, kind), as_type(y, kind), bits) & mask
        for x, y in zip(a, b, strict=True)
    ]
    assert got.tolist() == wanted


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32"])
@quick
@given(data=st.data())
def test_wide_products_keep_every_bit(one: One, kind: str, data: st.DataObject) -> None:
    bits = int(kind[1:])
    a, b, c = data.draw(bits_of(bits)), data.draw(bits_of(bits)), data.draw(bits_of(2 * bits))
    sources = [array(a, bits), array(b, bits), array(c, 2 * bits)]
    product = one(f"mul.wide.{kind} %d, %a, %b;", sources[:2], f"u{bits // 4}")
    total = one(f"mad.wide.{kind} %d, %a, %b, %c;", sources, f"u{bits // 4}")
    mask = (1 << (2 * bits)) - 1
    exact = [as_type(x, kind) * as_type(y, kind) for x, y in zip(a, b, strict=True)]
    assert product.tolist() == [value & mask for value in exact]
    assert total.tolist() == [(value + z) & mask for value, z in zip(exact, c, strict=True)]


@pytest.mark.parametrize("part", ["lo", "hi"])
@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
@quick
@given(data=st.data())
def test_multiply_add_adds_the_chosen_half(
    one: One, kind: str, part: str, data: st.DataObject
) -> None:
    bits = int(kind[1:])
    a, b, c = (data.draw(bits_of(bits)) for _ in range(3))
    sources = [array(values, bits) for values in (a, b, c)]
    got = one(f"mad.{part}.{kind} %d, %a, %b, %c;", sources, f"u{bits // 8}")
    shift = bits if part == "hi" else 0
    assert got.tolist() == [
        ((as_type(x, kind) * as_type(y, kind) >> shift) + z) & ((1 << bits) - 1)
        for x, y, z in zip(a, b, c, strict=True)
    ]


@pytest.mark.parametrize("bits", [32, 64])
@quick
@given(data=st.data())
def test_carry_chains_add_and_subtract_numbers_twice_as_wide(
    one: One, bits: int, data: st.DataObject
) -> None:
    names = "a", "b", "c", "e"
    low_a, low_b, high_a, high_b = (data.draw(bits_of(bits)) for _ in names)
    sources = [array(values, bits) for values in (low_a, low_b, high_a, high_b)]
    mask = (1 << bits) - 1
    for word, sign in (("add", 1), ("sub", -1)):
        code = f"{word}.cc.u{bits} %d, %a, %b; {word}c.u{bits} %d, %c, %e;"
        got = one(code, sources, f"u{bits // 8}")
        assert got.tolist() == [
            (((p << bits | x) + sign * (q << bits | y)) >> bits) & mask
            for x, y, p, q in zip(low_a, low_b, high_a, high_b, strict=True)
        ]


@quick
@given(data=st.data())
def test_products_of_numbers_twice_as_wide_by_carry_chains(one: One, data: st.DataObject) -> None:
    """(a + 2**32 b) c + e as compilers write it: the words of the sum, from the lowest."""
    a, b, c, e = (data.draw(bits_of(32)) for _ in range(4))
    sources = [array(values, 32) for values in (a, b, c, e)]
    code = "mad.lo.cc.u32 %r0, %a, %c, %e; madc.hi.u32 %r1, %a, %c, 0;"
    code += "mad.lo.cc.u32 %r1, %b, %c, %r1; madc.hi.cc.u32 %r2, %b, %c, 0;"
    for place in range(3):
        got = one(f"{code} mov.b32 %d, %r{place};", sources, "u4", declarations=".reg .b32 %r<3>;")
        assert got.tolist() == [
            ((x | y << 32) * z + w) >> 32 * place & 0xFFFFFFFF
            for x, y, z, w in zip(a, b, c, e, strict=True)
        ]


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
@quick
@given(data=st.data())
def test_logic_is_bitwise(one: One, kind: str, data: st.DataObject) -> None:
    bits = int(kind[1:])
    a, b = data.draw(bits_of(bits)), data.draw(bits_of(bits))
    sources = [array(a, bits), array(b, bits)]
    pairs = list(zip(a, b, strict=True))
    mask = (1 << bits) - 1
    out = f"u{bits // 8}"
    assert one(f"and.{kind} %d, %a, %b;", sources, out).tolist() == [x & y for x, y in pairs]
    assert one(f"or.{kind} %d, %a, %b;", sources, out).tolist() == [x | y for x, y in pairs]
    assert one(f"xor.{kind} %d, %a, %b;", sources, out).tolist() == [x ^ y for x, y in pairs]
    assert one(f"not.{kind} %d, %a;", sources, out).tolist() == [~x & mask for x in a]
    assert one(f"cnot.{kind} %d, %a;", sources, out).tolist() == [int(x == 0) for x in a]


@pytest.mark.parametrize("name", ["shl.b16", "shl.b32", "shl.b64", "shr.s32", "shr.u32", "shr.s64"])
@quick
@given(data=st.data())
def test_shifts_clamp_amounts_beyond_the_width(one: One, name: str, data: st.DataObject) -> None:
    word, kind = name.split(".")
    bits = int(kind[1:])
    a = data.draw(bits_of(bits))
    by = data.draw(st.lists(st.integers(0, 2 * bits), min_size=32, max_size=32))
    literal = data.draw(st.integers(0, bits - 1))
    sources = [array(a, bits), array(by, 32)]
    got = one(f"{name} %d, %a, %b;", sources, f"u{bits // 8}")
    fixed = one(f"{name} %d, %a, {literal};", sources, f"u{bits // 8}")
    mask = (1 << bits) - 1

    def shifted(x: int, n: int) -> int:
        return (x << n if word == "shl" else as_type(x, kind) >> n) & mask

    assert got.tolist() == [shifted(x, n) for x, n in zip(a, by, strict=True)]
    assert fixed.tolist() == [shifted(x, literal) for x in a]


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@quick
@given(data=st.data())
def test_field_extraction_repeats_the_sign_bit(one: One, kind: str, data: st.DataObject) -> None:
    """Bit by bit, as PTX ISA defines bfe."""
    bits = int(kind[1:])
    a = data.draw(bits_of(bits))
    position, length = (
        data.draw(st.lists(st.integers(0, 255), min_size=32, max_size=32)) for _ in range(2)
    )
    sources = [array(a, bits), array(position, 32), array(length, 32)]
    got = one(f"bfe.{kind} %d, %a, %b, %c;", sources, f"u{bits // 8}")

    def field(x: int, start: int, count: int) -> int:
        top = bits - 1
        sign = 0
        if kind[0] == "s" and count:
            sign = x >> min(start + count - 1, top) & 1
        return sum(
            (x >> (start + i) & 1 if i < count and start + i <= top else sign) << i
            for i in range(bits)
        )

    assert got.tolist() == [field(*each) for each in zip(a, position, length, strict=True)]


@pytest.mark.parametrize("bits", [32, 64])
@quick
@given(data=st.data())
def test_field_insertion_leaves_other_bits(one: One, bits: int, data: st.DataObject) -> None:
    a, b = data.draw(bits_of(bits)), data.draw(bits_of(bits))
    position, length = (
        data.draw(st.lists(st.integers(0, 80), min_size=32, max_size=32)) for _ in range(2)
    )
    sources = [array(a, bits), array(b, bits), array(position, 32), array(length, 32)]
    got = one(f"bfi.b{bits} %d, %a, %b, %c, %e;", sources, f"u{bits // 8}")

    def inserted(x: int, y: int, start: int, count: int) -> int:
        for i in range(count):
            if start + i < bits:
                y = y & ~(1 << (start + i)) | (x >> i & 1) << (start + i)
        return y

    assert got.tolist() == [inserted(*each) for each in zip(a, b, position, length, strict=True)]


@quick
@given(a=bits_of(32), b=bits_of(32), c=bits_of(32), lookup=st.integers(0, 255))
def test_byte_permutation_lookup_and_funnel_shift(
    one: One, a: list[int], b: list[int], c: list[int], lookup: int
) -> None:
    sources = [array(values, 32) for values in (a, b, c)]

    def permuted(x: int, y: int, selector: int) -> int:
        every = (y << 32 | x).to_bytes(8, "little")
        chosen = []
        for place in range(4):
            nibble = selector >> 4 * place & 15
            byte = every[nibble & 7]
            chosen.append((255 if byte >> 7 else 0) if nibble & 8 else byte)
        return int.from_bytes(bytes(chosen), "little")

    def looked_up(x: int, y: int, z: int) -> int:
        return sum(
            (lookup >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1)) & 1) << i
            for i in range(32)
        )

    triples = list(zip(a, b, c, strict=True))
    assert one("prmt.b32 %d, %a, %b, %c;", sources, "u4").tolist() == [
        permuted(*each) for each in triples
    ]
    assert one(f"lop3.b32 %d, %a, %b, %c, {lookup};", sources, "u4").tolist() == [
        looked_up(*each) for each in triples
    ]
    assert one("shf.l.wrap.b32 %d, %a, %b, %c;", sources, "u4").tolist() == [
        ((y << 32 | x) << (n & 31)) >> 32 & 0xFFFFFFFF for x, y, n in triples
    ]
    assert one("shf.r.clamp.b32 %d, %a, %b, %c;", sources, "u4").tolist() == [
        (y << 32 | x) >> min(n, 32) & 0xFFFFFFFF for x, y, n in triples
    ]


@pytest.mark.parametrize("bits", [32, 64])
@quick
@given(data=st.data())
def test_bits_are_counted_found_and_reversed(one: One, bits: int, data: st.DataObject) -> None:
    a = data.draw(bits_of(bits))
    source = [array(a, bits)]
    out = f"u{bits // 8}"
    none = 0xFFFFFFFF
    assert one(f"popc.b{bits} %d, %a;", source, "u4").tolist() == [x.bit_count() for x in a]
    assert one(f"clz.b{bits} %d, %a;", source, "u4").tolist() == [bits - x.bit_length() for x in a]
    assert one(f"brev.b{bits} %d, %a;", source, out).tolist() == [
        int(f"{x:0{bits}b}"[::-1], 2) for x in a
    ]
    assert one(f"bfind.u{bits} %d, %a;", source, "u4").tolist() == [
        (x.bit_length() - 1) & none for x in a
    ]
    numbers = [signed(x, bits) for x in a]
    assert one(f"bfind.s{bits} %d, %a;", source, "u4").tolist() == [
        ((~x if x < 0 else x).bit_length() - 1) & none for x in numbers
    ]


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
@quick
@given(data=st.data())
def test_negation_and_absolute_value_wrap(one: One, kind: str, data: st.DataObject) -> None:
    bits = int(kind[1:])
    a = data.draw(bits_of(bits))
    mask = (1 << bits) - 1
    source = [array(a, bits)]
    out = f"u{bits // 8}"
    assert one(f"neg.{kind} %d, %a;", source, out).tolist() == [-x & mask for x in a]
    assert one(f"abs.{kind} %d, %a;", source, out).tolist() == [
        abs(signed(x, bits)) & mask for x in a
    ]


@quick
@given(a=bits_of(32), b=bits_of(32), c=bits_of(32))
def test_saturating_sums_and_sums_of_differences(
    one: One, a: list[int], b: list[int], c: list[int]
) -> None:
    sources = [array(values, 32) for values in (a, b, c)]
    low, high = -(1 << 31), (1 << 31) - 1
    pairs = [(signed(x, 32), signed(y, 32)) for x, y in zip(a, b, strict=True)]
    assert one("add.sat.s32 %d, %a, %b;", sources[:2], "i4").tolist() == [
        max(low, min(high, x + y)) for x, y in pairs
    ]
    assert one("sub.sat.s32 %d, %a, %b;", sources[:2], "i4").tolist() == [
        max(low, min(high, x - y)) for x, y in pairs
    ]
    assert one("sad.u32 %d, %a, %b, %c;", sources, "u4").tolist() == [
        (abs(x - y) + z) & 0xFFFFFFFF for x, y, z in zip(a, b, c, strict=True)
    ]


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32", "s64", "u64"])
@quick
@given(data=st.data())
def test_comparisons_see_the_sign_of_their_type(one: One, kind: str, data: st.DataObject) -> None:
    bits = int(kind[1:])
    a = data.draw(bits_of(bits))
    b = [
        x if same else y
        for x, y, same in zip(
            a,
            data.draw(bits_of(bits)),
            data.draw(st.lists(st.booleans(), min_size=32, max_size=32)),
            strict=True,
        )
    ]
    sources = [array(a, bits), array(b, bits)]
    pairs = [(as_type(x, kind), as_type(y, kind)) for x, y in zip(a, b, strict=True)]
    for name, holds in COMPARISONS.items():
        code = f"setp.{name}.{kind} %q, %a, %b; selp.b32 %d, 7, 9, %q;"
        got = one(code, sources, "u4", declarations=".reg .pred %q;")
        assert got.tolist() == [7 if holds(x, y) else 9 for x, y in pairs], name
    for name, plain in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
        if kind[0] == "u":
            code = f"set.{name}.u32.{kind} %d, %a, %b;"
            got = one(code, sources, "u4")
            assert got.tolist() == [0xFFFFFFFF * COMPARISONS[plain](x, y) for x, y in pairs]


def test_a_comparison_combines_with_a_predicate_and_gives_its_complement(one: One) -> None:
    a = np.array([1, 5, 1, 5], np.int32)
    q = np.array([0, 0, 1, 1], np.int32)
    for word, combine in (
        ("and", lambda x, y: x and y),
        ("or", lambda x, y: x or y),
        ("xor", lambda x, y: x != y),
    ):
        code = f"""setp.ne.s32 %q, %b, 0;
        setp.lt.{word}.s32 %r|%s, %a, 3, %q;
        selp.s32 %d, 1, 0, %r; selp.s32 %w, 2, 0, %s; add.s32 %d, %d, %w;"""
        got = one(code, [a, q], "i4", declarations=".reg .pred %q, %r, %s;")
        wanted = [
            int(combine(x < 3, bool(y))) + 2 * int(combine(not x < 3, bool(y)))
            for x, y in zip(a, q, strict=True)
        ]
        assert got.tolist() == wanted


def test_predicate_logic_and_negated_predicates(one: One) -> None:
    a, b = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    code = """setp.ne.s32 %q, %a, 0; setp.ne.s32 %r, %b, 0;
    and.pred %s, %q, %r; selp.s32 %d, 1, 0, %s;
    or.pred %s, %q, %r; @%s add.s32 %d, %d, 2;
    xor.pred %s, %q, %r; @!%s add.s32 %d, %d, 4;
    not.pred %s, %q; mov.pred %q, %s; @%q add.s32 %d, %d, 8;"""
    got = one(code, [a, b], "i4", declarations=".reg .pred %q, %r, %s;")
    assert got.tolist() == [
        int(x and y) + 2 * int(x or y) + 4 * int(x == y) + 8 * int(not x)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]


def test_selection_by_sign(one: One) -> None:
    c = np.array([-3, 0, 4], np.int32)
    assert one("slct.s32.s32 %d, 1, 2, %a;", [c], "i4").tolist() == [2, 1, 1]
    f = np.array([-0.5, -0.0, math.nan], np.float32)
    assert one("slct.s32.f32 %d, 1, 2, %a;", [f], "i4").tolist() == [2, 1, 2]
