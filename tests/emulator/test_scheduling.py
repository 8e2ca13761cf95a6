"""Threads that part and meet again: branches, loops, barriers, exits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel
from specrepro.repro.errors import UnsupportedError

Array = np.ndarray[Any, Any]
Build = Callable[..., Kernel]
Run = Callable[..., LaunchReport]

DECLARE = """.reg .b64 %at, %x; .reg .b32 %v, %u, %k, %m; .reg .pred %q, %r;
.shared .align 4 .b8 table[4096];"""
KEEP = "mad.wide.s32 %at, %i, 4, %p0; st.global.u32 [%at], %v;"


def result(build: Build, run: Run, body: str, blocks: int, threads: int) -> list[int]:
    out = np.full(blocks * threads, -7, np.int32)
    report = run(build(body, 1, DECLARE), blocks, threads, [Buffer("out", out)])
    assert report.accesses == ()
    return out.tolist()


def test_both_sides_of_a_branch_run_for_their_own_threads(build: Build, run: Run) -> None:
    body = f"""
    mov.u32 %v, 100;
    setp.lt.s32 %q, %t, 3;
    @%q bra low;
    add.s32 %v, %v, %t;
    bra.uni join;
    low: sub.s32 %v, %v, %t;
    join: add.s32 %v, %v, 1000;
    {KEEP}"""
    assert result(build, run, body, 1, 6) == [1100 + (-n if n < 3 else n) for n in range(6)]


def test_each_thread_leaves_a_loop_after_its_own_turns(build: Build, run: Run) -> None:
    body = f"""
    mov.u32 %v, 0; mov.u32 %k, 0;
    again: setp.ge.s32 %q, %k, %i;
    @%q bra done;
    add.s32 %k, %k, 1; add.s32 %v, %v, %k;
    bra again;
    done: {KEEP}"""
    assert result(build, run, body, 3, 20) == [n * (n + 1) // 2 for n in range(60)]


def test_nested_loops_and_early_exits(build: Build, run: Run) -> None:
    body = f"""
    mov.u32 %v, 0; mov.u32 %k, 0;
    setp.eq.s32 %q, %t, 5; @%q exit;
    outer: mov.u32 %m, 0;
    inner: add.s32 %v, %v, 1; add.s32 %m, %m, 1;
    setp.lt.s32 %q, %m, %k; @%q bra inner;
    add.s32 %k, %k, 1;
    setp.le.s32 %q, %k, %t; @%q bra outer;
    {KEEP}"""

    def count(turns: int) -> int:
        return sum(max(1, k) for k in range(turns + 1))

    assert result(build, run, body, 1, 8) == [-7 if n == 5 else count(n) for n in range(8)]


def test_registers_of_waiting_threads_survive_what_others_compute(build: Build, run: Run) -> None:
    body = f"""
    add.s32 %v, %t, 50; mov.u32 %u, 1;
    setp.lt.s32 %q, %t, 2; @%q bra join;
    mov.u32 %v, 1; mov.u32 %u, 2; mul.lo.s32 %v, %v, %u;
    join: mul.lo.s32 %v, %v, %u;
    {KEEP}"""
    assert result(build, run, body, 1, 4) == [50, 51, 4, 4]


REVERSE = """
mul.lo.s32 %u, %t, 4; mov.u32 %m, table; add.s32 %u, %u, %m; st.shared.u32 [%u], %i;
bar.sync 0;
sub.s32 %u, %n, %t; sub.s32 %u, %u, 1; mul.lo.s32 %u, %u, 4; add.s32 %u, %u, %m;
ld.shared.u32 %v, [%u];
"""


def test_a_barrier_orders_shared_memory_of_its_block_only(build: Build, run: Run) -> None:
    found = result(build, run, REVERSE + KEEP, 3, 70)
    assert found == [b * 70 + 69 - n for b in range(3) for n in range(70)]


def test_blocks_pass_a_barrier_in_a_loop_a_different_number_of_times(
    build: Build, run: Run
) -> None:
    """Block b sums its threads' numbers b + 1 times; a batch-wide barrier would deadlock."""
    body = f"""
    mov.u32 %m, %ctaid.x; mov.u32 %k, 0; mov.u32 %v, 0;
    mul.lo.s32 %u, %t, 4;
    again:
    st.shared.u32 [%u], %k;
    bar.sync 0;
    xor.b32 %u, %u, 4; ld.shared.u32 %w, [%u]; add.s32 %v, %v, %w; xor.b32 %u, %u, 4;
    bar.sync 0;
    add.s32 %k, %k, 1;
    setp.le.s32 %q, %k, %m; @%q bra again;
    {KEEP}"""
    assert result(build, run, body, 4, 2) == [b * (b + 1) // 2 for b in range(4) for _ in range(2)]


def test_exited_threads_count_as_arrived(build: Build, run: Run) -> None:
    body = f"""
    setp.gt.s32 %q, %t, 3; @%q ret;
    mul.lo.s32 %u, %t, 4; st.shared.u32 [%u], %t;
    bar.sync 0;
    xor.b32 %u, %u, 12; ld.shared.u32 %v, [%u];
    {KEEP}"""
    assert result(build, run, body, 2, 40) == [
        3 - n if n < 4 else -7 for _ in range(2) for n in range(40)
    ]


def test_threads_may_wait_for_the_same_barrier_at_different_places(build: Build, run: Run) -> None:
    body = f"""
    mul.lo.s32 %u, %t, 4; st.shared.u32 [%u], %t;
    setp.lt.s32 %q, %t, 2; @%q bra low;
    bar.sync 0; mov.u32 %k, 100; bra join;
    low: bar.sync 0; mov.u32 %k, 200;
    join: xor.b32 %u, %u, 8; ld.shared.u32 %v, [%u]; add.s32 %v, %v, %k;
    {KEEP}"""
    assert result(build, run, body, 1, 4) == [202, 203, 100, 101]


def test_threads_at_different_barriers_for_ever_are_no_result(build: Build, run: Run) -> None:
    body = """
    setp.lt.s32 %q, %t, 2; @%q bra low;
    bar.sync 1; bra join;
    low: bar.sync 2;
    join:"""
    with pytest.raises(UnsupportedError, match="different barriers"):
        run(build(body, 0, DECLARE), 1, 4, [])


def test_a_shuffle_waits_for_the_lanes_that_took_another_way(build: Build, run: Run) -> None:
    body = f"""
    mov.u32 %v, 0;
    setp.lt.s32 %q, %t, 7; @%q bra low;
    add.s32 %v, %t, 1000; bra join;
    low: mov.u32 %k, 0;
    again: add.s32 %k, %k, 1; setp.lt.s32 %q, %k, 5; @%q bra again;
    add.s32 %v, %t, 2000;
    join: shfl.sync.idx.b32 %v, %v, 31, 31, -1;
    {KEEP}"""
    assert result(build, run, body, 2, 32) == [1031] * 64


def test_the_same_shuffle_in_a_loop_meets_anew_each_turn(build: Build, run: Run) -> None:
    """Lanes skip a turn's work by their number; the shuffle must see all 32 each time."""
    body = f"""
    mov.u32 %k, 0; mov.u32 %v, %t;
    again:
    and.b32 %u, %t, 1; setp.eq.s32 %q, %u, %k; @%q bra skip;
    add.s32 %v, %v, 10;
    skip: shfl.sync.down.b32 %u, %v, 1, 31, -1;
    mov.u32 %v, %u;
    add.s32 %k, %k, 1; setp.lt.s32 %q, %k, 2; @%q bra again;
    {KEEP}"""
    lanes = list(range(32))
    for turn in range(2):
        lanes = [v + (0 if n % 2 == turn else 10) for n, v in enumerate(lanes)]
        lanes = [lanes[min(n + 1, 31)] for n in range(32)]
    assert result(build, run, body, 1, 32) == lanes


def test_a_shuffle_that_names_lanes_which_never_come_is_no_result(build: Build, run: Run) -> None:
    body = """
    setp.lt.s32 %q, %t, 4; @%q bra low;
    bar.sync 0; bra join;
    low: shfl.sync.idx.b32 %v, %t, 0, 31, -1; bar.sync 0;
    join:"""
    with pytest.raises(UnsupportedError, match=r"shfl\.sync\.idx\.b32: threads that its member"):
        run(build(body, 0, DECLARE), 1, 32, [])


def test_a_shuffle_needs_only_the_lanes_it_names(build: Build, run: Run) -> None:
    body = f"""
    mov.u32 %v, 5;
    setp.ge.s32 %q, %t, 4; @%q bra join;
    shfl.sync.idx.b32 %v, %t, 3, 31, 15;
    join: {KEEP}"""
    assert result(build, run, body, 1, 32) == [3] * 4 + [5] * 28


def test_a_warp_barrier_orders_shared_memory_of_diverged_lanes(build: Build, run: Run) -> None:
    body = f"""
    mul.lo.s32 %u, %t, 4;
    setp.eq.s32 %q, %t, 0; @%q bra first;
    bra meet;
    first: mov.u32 %k, 42; st.shared.u32 [table], %k;
    meet: bar.warp.sync -1;
    ld.shared.u32 %v, [table];
    {KEEP}"""
    assert result(build, run, body, 1, 32) == [42] * 32


def test_blocks_and_threads_have_three_dimensions(build: Build) -> None:
    from specrepro.repro.emulator.launch import launch

    body = """
    mov.u32 %v, %tid.y; mov.u32 %u, %tid.z; mad.lo.s32 %v, %u, 10, %v;
    mov.u32 %u, %ctaid.y; mad.lo.s32 %v, %u, 100, %v;
    mov.u32 %u, %ctaid.z; mad.lo.s32 %v, %u, 1000, %v;
    mov.u32 %u, %nctaid.z; mad.lo.s32 %v, %u, 10000, %v;
    mov.u32 %u, %ntid.y; mad.lo.s32 %v, %u, 100000, %v;
    mov.u32 %k, %ctaid.z; mov.u32 %m, %nctaid.y; mul.lo.s32 %k, %k, %m;
    mov.u32 %m, %ctaid.y; add.s32 %k, %k, %m; mul.lo.s32 %k, %k, 12;
    mov.u32 %m, %tid.z; mad.lo.s32 %k, %m, 6, %k;
    mov.u32 %m, %tid.y; mad.lo.s32 %k, %m, 2, %k; add.s32 %k, %k, %t;
    mad.wide.s32 %at, %k, 4, %p0; st.global.u32 [%at], %v;"""
    out = np.zeros(2 * 3 * 12, np.int32)
    built = build(body, 1, DECLARE)
    assert launch(built, (1, 3, 2), (2, 3, 2), [Buffer("out", out)]).accesses == ()
    assert out.tolist() == [
        300000 + 20000 + bz * 1000 + by * 100 + z * 10 + y
        for bz in range(2)
        for by in range(3)
        for z in range(2)
        for y in range(3)
        for _ in range(2)
    ]


@pytest.mark.parametrize("threads", [1, 31, 33, 96])
def test_any_number_of_threads_works(build: Build, run: Run, threads: int) -> None:
    assert result(build, run, REVERSE + KEEP, 2, threads) == [
        b * threads + threads - 1 - n for b in range(2) for n in range(threads)
    ]


LOCK = """
    .reg .b64 %lock;
    add.u64 %lock, %p0, 256;
    spin: atom.global.acquire.gpu.cas.b32 %u, [%lock], 0, 1;
    setp.ne.s32 %q, %u, 0;
    @%q bra spin;
    mov.u32 %k, 0;
    work: add.s32 %k, %k, 1; setp.lt.s32 %q, %k, 20; @%q bra work;
    ld.global.u32 %v, [%p0]; add.s32 %v, %v, 1; st.global.u32 [%p0], %v;
    MEET
    atom.global.release.gpu.exch.b32 %u, [%lock], 0;"""


@pytest.mark.parametrize("meet", ["", "bar.sync 0;", "shfl.sync.idx.b32 %m, %v, 0, 0, 1;"])
def test_the_holder_of_a_lock_gets_on_while_others_spin_before_it(
    build: Build, run: Run, meet: str
) -> None:
    memory = np.zeros(65, np.int32)
    kernel = build(LOCK.replace("MEET", meet), 1, DECLARE)
    report = run(kernel, 12, 1, [Buffer("out", memory)])
    assert report.accesses == ()
    assert (memory[0], memory[64]) == (12, 0)


def test_a_lock_that_lanes_of_one_warp_spin_for_goes_round(build: Build, run: Run) -> None:
    memory = np.zeros(65, np.int32)
    report = run(build(LOCK.replace("MEET", ""), 1, DECLARE), 2, 40, [Buffer("out", memory)])
    assert report.accesses == ()
    assert (memory[0], memory[64]) == (80, 0)


def test_a_lock_that_is_never_free_is_no_result(build: Build, run: Run) -> None:
    memory = np.zeros(65, np.int32)
    memory[64] = 1
    kernel = build(LOCK.replace("MEET", ""), 1, DECLARE)
    with pytest.raises(UnsupportedError, match="did not end"):
        run(kernel, 2, 1, [Buffer("out", memory)], max_instructions=50_000)
