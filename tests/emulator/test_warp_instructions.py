"""Shuffles, votes, matches and reductions, lane by lane as PTX ISA defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Array = np.ndarray[Any, Any]
One = Callable[..., Array]
quick = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
PREDICATE = ".reg .pred %q; .reg .b32 %v;"


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Source lane and predicate, from the pseudo code of shfl.sync."""
    by, clamp, segment = b & 31, c & 31, c >> 8 & 31
    most = (lane & segment) | (clamp & ~segment & 31)
    least = lane & segment
    if mode == "up":
        source = lane - by
        holds = source >= most
    elif mode == "down":
        source = lane + by
        holds = source <= most
    elif mode == "bfly":
        source = lane ^ by
        holds = source <= most
    else:
        source = least | (by & ~segment & 31)
        holds = source <= most
    return (source if holds else lane), holds


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@quick
@given(b=st.integers(0, 31), clamp=st.integers(0, 31), segment=st.sampled_from([0, 16, 24, 28, 31]))
def test_shuffles_read_the_lane_of_the_definition(
    one: One, mode: str, b: int, clamp: int, segment: int
) -> None:
    values = np.arange(100, 164, dtype=np.uint32)
    c = segment << 8 | clamp
    wanted = [shuffled(mode, lane, b, c) for lane in range(32)] * 2
    literal = f"shfl.sync.{mode}.b32 %v|%q, %a, {b}, {c}, -1; selp.b32 %d, %v, 0, %q;"
    register = f"shfl.sync.{mode}.b32 %v|%q, %a, %b, %c, -1; selp.b32 %d, %v, 0, %q;"
    expected = [
        (100 + 32 * (n // 32) + source if holds else 0) for n, (source, holds) in enumerate(wanted)
    ]
    assert one(literal, [values], "u4", declarations=PREDICATE).tolist() == expected
    same = [np.full(64, b, np.uint32), np.full(64, c, np.uint32)]
    got = one(register, [values, *same], "u4", declarations=PREDICATE)
    assert got.tolist() == expected


def test_a_shuffle_may_take_another_lane_for_each_lane(one: One) -> None:
    order = np.random.default_rng(1).permutation(32).astype(np.uint32)
    values = np.arange(32, dtype=np.float32)
    got = one("shfl.sync.idx.b32 %d, %a, %b, 31, -1;", [values, order], "f4")
    assert got.tolist() == order.tolist()


@quick
@given(bits=st.lists(st.booleans(), min_size=64, max_size=64), members=st.integers(1, 2**32 - 1))
def test_votes_count_the_named_lanes(one: One, bits: list[bool], members: int) -> None:
    flags = np.array(bits, np.uint32)
    named = [members >> lane & 1 for lane in range(32)]
    warps = [
        [bit for bit, use in zip(bits[w : w + 32], named, strict=True) if use] for w in (0, 32)
    ]
    ballots = [
        sum(1 << lane for lane in range(32) if named[lane] and bits[w + lane]) for w in (0, 32)
    ]
    mask = f"{members - (1 << 32) if members >> 31 else members}"
    start = "setp.ne.s32 %q, %a, 0;"

    def spread(values: list[Any]) -> list[int]:
        return [int(value) for value in values for _ in range(32)]

    got = one(
        f"{start} vote.sync.ballot.b32 %d, %q, {mask};", [flags], "u4", declarations=PREDICATE
    )
    assert got.tolist() == spread(ballots)
    for name, decide in (
        ("all", all),
        ("any", any),
        ("uni", lambda warp: all(warp) or not any(warp)),
    ):
        code = f"{start} vote.sync.{name}.pred %q, %q, {mask}; selp.b32 %d, 1, 0, %q;"
        got = one(code, [flags], "u4", declarations=PREDICATE)
        assert got.tolist() == spread([decide(warp) for warp in warps])


def test_matching_lanes_find_each_other(one: One) -> None:
    values = np.random.default_rng(2).integers(0, 5, 64).astype(np.uint32)
    wanted = [
        sum(1 << k for k in range(32) if values[n // 32 * 32 + k] == values[n]) for n in range(64)
    ]
    assert one("match.any.sync.b32 %d, %a, -1;", [values], "u4").tolist() == wanted
    wide = values.astype(np.uint64) << np.uint64(40)
    assert one("match.any.sync.b64 %d, %a, -1;", [wide], "u4").tolist() == wanted


@quick
@given(values=st.lists(st.integers(0, 2**32 - 1), min_size=32, max_size=32))
def test_a_reduction_gives_every_lane_the_value_of_the_warp(one: One, values: list[int]) -> None:
    a = np.array(values, np.uint32)
    numbers = a.view(np.int32).tolist()
    every, some, odd = values[0], values[0], 0
    for value in values:
        every, some, odd = every & value, some | value, odd ^ value
    for code, wanted in {
        "add.u32": sum(values) & 0xFFFFFFFF,
        "min.s32": min(numbers) & 0xFFFFFFFF,
        "max.s32": max(numbers) & 0xFFFFFFFF,
        "max.u32": max(values),
        "min.u32": min(values),
        "and.b32": every,
        "or.b32": some,
        "xor.b32": odd,
    }.items():
        assert one(f"redux.sync.{code} %d, %a, -1;", [a], "u4").tolist() == [wanted] * 32


def test_the_active_mask_holds_the_lanes_that_are_here(one: One) -> None:
    a = np.arange(32, dtype=np.uint32)
    code = """mov.u32 %d, 0; setp.lt.u32 %q, %a, 5; @!%q bra join;
    activemask.b32 %d;
    join:"""
    got = one(code, [a], "u4", declarations=PREDICATE)
    assert got.tolist() == [31] * 5 + [0] * 27


def test_lane_numbers_and_masks(one: One) -> None:
    a = np.arange(40, dtype=np.uint32)
    lanes = [n % 32 for n in range(40)]
    assert one("mov.u32 %d, %laneid;", [a], "u4").tolist() == lanes
    assert one("mov.u32 %d, %warpid;", [a], "u4").tolist() == [n // 32 for n in range(40)]
    assert one("mov.u32 %d, %lanemask_lt;", [a], "u4").tolist() == [(1 << n) - 1 for n in lanes]
    assert one("mov.u32 %d, %lanemask_eq;", [a], "u4").tolist() == [1 << n for n in lanes]
    assert one("mov.u32 %d, %lanemask_ge;", [a], "u4").tolist() == [
        0xFFFFFFFF & ~((1 << n) - 1) for n in lanes
    ]
