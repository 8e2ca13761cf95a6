"""Registers of 128 bits, and barriers of some threads that collect predicates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specrepro.repro.emulator.checks import ALL
from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel
from specrepro.repro.records import Kind

Run = Callable[..., LaunchReport]
Build = Callable[..., Kernel]

SWAPPED = """
mad.wide.u32 %p0, %i, 16, %p0;
mad.wide.u32 %p1, %i, 16, %p1;
ld.global.b128 %wide, [%p0];
mov.b128 {%low, %high}, %wide;
mov.b128 %other, {%high, %low};
mov.b128 %wide, %other;
st.global.b128 [%p1], %wide;"""
WIDE = ".reg .b128 %wide, %other; .reg .b64 %low, %high;"


def test_128_bits_are_loaded_taken_apart_put_together_and_stored(build: Build, run: Run) -> None:
    given = np.arange(64, dtype=np.uint64) * 0x0123456789ABCDEF
    out = np.zeros(64, np.uint64)
    report = run(build(SWAPPED, 2, WIDE), 1, 32, [Buffer("in", given), Buffer("out", out)])
    assert report.accesses == ()
    assert np.array_equal(out.reshape(-1, 2), given.reshape(-1, 2)[:, ::-1])


def test_128_bits_are_one_access_that_is_aligned_and_within(build: Build, run: Run) -> None:
    raw = np.zeros(1024, np.uint8)
    start = -raw.ctypes.data % 16
    given = raw[start : start + 31 * 16 + 8].view(np.uint64)
    out = raw[start + 520 :][: 31 * 16].view(np.uint64)  # 8 past a multiple of 16
    report = run(build(SWAPPED, 2, WIDE), 1, 32, [Buffer("in", given), Buffer("out", out)])
    found = {(a.kind, a.buffer): (a.width, a.threads, a.elements.tolist()) for a in report.accesses}
    assert found[Kind.OUT_OF_BOUNDS_READ, "in"] == (16, 1, [63])
    assert found[Kind.MISALIGNED_ACCESS, "out"][:2] == (16, 32)


# Warps 0 and 1 meet at barrier 1, warps 2 to 4 at barrier 2, warp 5 at none.
GROUPED = """
shr.u32 %warp, %t, 5;
setp.gt.u32 %none, %warp, 4;
@%none bra skip;
setp.gt.u32 %q, %warp, 1;
selp.u32 %number, 2, 1, %q;
selp.u32 %count, 96, 64, %q;
mad.wide.u32 %p0, %i, 4, %p0;
ld.global.u32 %w, [%p0];
setp.ne.u32 %q, %w, 0;
bar.red.MODE %number, %count, %q;
KEPT
mad.wide.u32 %p1, %i, 4, %p1;
st.global.u32 [%p1], %w;
skip:"""
GROUPS = ".reg .b32 %warp, %number, %count; .reg .pred %q, %none;"
ROUNDS = {
    "popc.u32 %w,": lambda group: np.count_nonzero(group),
    "and.pred %q,": lambda group: bool(group.all()),
    "or.pred %q,": lambda group: bool(group.any()),
}


@pytest.mark.parametrize("mode", ROUNDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_barrier_of_some_threads_collects_what_those_bring(
    build: Build, run: Run, mode: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    given = rng.random((3, 192)) < rng.choice([0.01, 0.5, 0.99], (3, 1))
    given[0, :64], given[1, 64:160] = seed % 2, True
    kept = "" if mode.startswith("popc") else "selp.u32 %w, 1, 0, %q;"
    kernel = build(GROUPED.replace("MODE", mode).replace("KEPT", kept), 2, GROUPS)
    out = np.full(given.size, 7, np.int32)
    arguments = [Buffer("in", given.astype(np.int32).reshape(-1)), Buffer("out", out)]
    report = run(kernel, 3, 192, arguments, checks=ALL)
    assert report.accesses == ()
    wanted = np.full(given.shape, 7, np.int32)
    for block in range(3):
        for part in (slice(0, 64), slice(64, 160)):
            wanted[block, part] = ROUNDS[mode](given[block, part])
    assert np.array_equal(out.reshape(given.shape), wanted)
