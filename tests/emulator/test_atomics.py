"""Atomics on few places by many threads: each sees what those before it left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel

Array = np.ndarray[Any, Any]
Build = Callable[..., Kernel]
Run = Callable[..., LaunchReport]
quick = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

THREADS, PLACES = 40, 5
MASK = 0xFFFFFFFF


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda old, new: (old + new) & MASK,
    "add.s32": lambda old, new: (old + new) & MASK,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda old, new: min(signed(old), signed(new)) & MASK,
    "max.s32": lambda old, new: max(signed(old), signed(new)) & MASK,
    "and.b32": lambda old, new: old & new,
    "or.b32": lambda old, new: old | new,
    "xor.b32": lambda old, new: old ^ new,
    "exch.b32": lambda old, new: new,
    "inc.u32": lambda old, new: 0 if old >= new else old + 1,
    "dec.u32": lambda old, new: new if old == 0 or old > new else old - 1,
}


def body(instruction: str, size: int = 4) -> str:
    """p0: place of each thread, p1: its value, p2: the places, p3: what each thread found."""
    word = {4: "u32", 8: "u64"}[size]
    return f"""
    mad.wide.s32 %at, %i, 4, %p0; ld.global.u32 %j, [%at];
    mad.wide.s32 %at, %i, {size}, %p1; ld.global.{word} %v, [%at];
    mad.wide.s32 %at, %j, {size}, %p2;
    {instruction}
    mad.wide.s32 %at, %i, {size}, %p3; st.global.{word} [%at], %o;"""


def declare(size: int = 4) -> str:
    return f".reg .b64 %at; .reg .b32 %j; .reg .b{8 * size} %v, %o;"


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("same", [False, True])
@quick
@given(data=st.data())
def test_every_thread_finds_what_the_threads_before_it_left(
    build: Build, run: Run, name: str, same: bool, data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.integers(0, MASK), min_size=THREADS, max_size=THREADS))
    start = data.draw(st.lists(st.integers(0, MASK), min_size=PLACES, max_size=PLACES))
    places = [
        0 if same else place
        for place in data.draw(
            st.lists(st.integers(0, PLACES - 1), min_size=THREADS, max_size=THREADS)
        )
    ]
    memory, found = np.array(start, np.uint32), np.zeros(THREADS, np.uint32)
    args = [
        Buffer("places", np.array(places, np.int32)),
        Buffer("values", np.array(values, np.uint32)),
        Buffer("memory", memory),
        Buffer("found", found),
    ]
    built = build(body(f"atom.global.{name} %o, [%at], %v;"), 4, declare())
    assert run(built, 2, THREADS // 2, args).accesses == ()
    wanted = []
    for place, value in zip(places, values, strict=True):
        wanted.append(start[place])
        start[place] = OPERATIONS[name](start[place], value)
    assert memory.tolist() == start
    assert found.tolist() == wanted


def test_compare_and_swap_lets_one_thread_win(build: Build, run: Run) -> None:
    memory, found = np.zeros(1, np.uint32), np.zeros(8, np.uint32)
    args = [
        Buffer("places", np.zeros(8, np.int32)),
        Buffer("values", np.arange(5, 13, dtype=np.uint32)),
        Buffer("memory", memory),
        Buffer("found", found),
    ]
    built = build(body("atom.global.cas.b32 %o, [%at], 0, %v;"), 4, declare())
    run(built, 1, 8, args)
    assert (memory.tolist(), found.tolist()) == ([5], [0] + [5] * 7)


def test_64_bit_and_float_atomics(build: Build, run: Run) -> None:
    places = Buffer("places", np.zeros(4, np.int32))
    memory, found = np.array([2**63], np.uint64), np.zeros(4, np.uint64)
    values = Buffer("values", np.full(4, 2**62, np.uint64))
    built = build(body("atom.global.add.u64 %o, [%at], %v;", 8), 4, declare(8))
    run(built, 1, 4, [places, values, Buffer("memory", memory), Buffer("found", found)])
    assert memory.tolist() == [2**63]
    assert found.tolist() == [2**63, 2**63 + 2**62, 0, 2**62]
    total, each = np.array([0.5], np.float32), np.zeros(4, np.float32)
    addends = np.array([1, 2, 4, 8], np.float32)
    built = build(body("atom.global.gpu.acq_rel.add.f32 %o, [%at], %v;"), 4, declare())
    run(
        built,
        1,
        4,
        [places, Buffer("v", addends), Buffer("memory", total), Buffer("found", each)],
    )
    assert (total.tolist(), each.tolist()) == ([15.5], [0.5, 1.5, 3.5, 7.5])


def test_reductions_return_nothing_and_shared_memory_has_atomics_too(
    build: Build, run: Run
) -> None:
    code = """
    .shared .align 4 .b8 sum[4];
    mov.u32 %v, 0; st.shared.u32 [sum], %v;
    bar.sync 0;
    red.shared.add.u32 [sum], %t;
    bar.sync 0;
    ld.shared.u32 %v, [sum];
    mad.wide.s32 %at, %i, 4, %p0; st.global.u32 [%at], %v;
    red.global.max.s32 [%p1], %i;"""
    out, most = np.zeros(20, np.uint32), np.array([-5], np.int32)
    built = build(code, 2, declare())
    assert run(built, 2, 10, [Buffer("out", out), Buffer("most", most)]).accesses == ()
    assert out.tolist() == [45] * 20
    assert most.tolist() == [19]


def test_only_the_threads_of_the_predicate_take_part(build: Build, run: Run) -> None:
    code = """
    setp.lt.s32 %q, %t, 3;
    mov.u32 %v, 9;
    @%q atom.global.add.u32 %v, [%p0], 1;
    mad.wide.s32 %at, %i, 4, %p1; st.global.u32 [%at], %v;"""
    count, out = np.zeros(1, np.uint32), np.zeros(6, np.uint32)
    built = build(code, 2, declare() + ".reg .pred %q;")
    run(built, 1, 6, [Buffer("count", count), Buffer("out", out)])
    assert (count.tolist(), out.tolist()) == ([3], [0, 1, 2, 9, 9, 9])
