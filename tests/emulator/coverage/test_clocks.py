"""Clocks and multiprocessor numbers: what is made up, and that it is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel

Run = Callable[..., LaunchReport]
Build = Callable[..., Kernel]

ADDRESS = "mad.wide.u32 %p0, %i, 8, %p0;"


@pytest.mark.parametrize(
    ("name", "bits"),
    [("%clock", 32), ("%clock64", 64), ("%globaltimer", 64), ("%globaltimer_lo", 32)],
)
def test_each_reading_of_a_clock_is_later_than_the_one_before(
    build: Build, run: Run, name: str, bits: int
) -> None:
    wide = "mov.u64 %d, %first;" if bits == 64 else "cvt.u64.u32 %d, %first;"
    body = f"""
mov.u{bits} %first, {name};
mov.u{bits} %second, {name};
sub.u{bits} %first, %second, %first;
{wide}
{ADDRESS}
st.global.u64 [%p0], %d;"""
    out = np.zeros(64, np.int64)
    kernel = build(body, 1, f".reg .b{bits} %first, %second; .reg .b64 %d;")
    report = run(kernel, 2, 32, [Buffer("out", out)])
    assert out.min() > 0
    assert report.invented == (name,)


def test_a_kernel_that_waits_for_time_to_pass_ends(build: Build, run: Run) -> None:
    body = f"""
mov.u64 %start, %clock64;
wait:
mov.u64 %now, %clock64;
sub.u64 %now, %now, %start;
setp.lt.u64 %q, %now, 1000000;
@%q bra wait;
{ADDRESS}
st.global.u64 [%p0], %now;"""
    out = np.zeros(32, np.int64)
    kernel = build(body, 1, ".reg .b64 %start, %now; .reg .pred %q;")
    run(kernel, 1, 32, [Buffer("out", out)])
    assert out.min() >= 1_000_000


def test_threads_of_a_block_are_on_one_multiprocessor_of_those_there_are(
    build: Build, run: Run
) -> None:
    body = f"""
mov.u32 %w, %smid;
mov.u32 %count, %nsmid;
mov.b64 %d, {{%w, %count}};
{ADDRESS}
st.global.u64 [%p0], %d;"""
    out = np.zeros(200 * 32, np.int64)
    kernel = build(body, 1, ".reg .b32 %count; .reg .b64 %d;")
    report = run(kernel, 200, 32, [Buffer("out", out)])
    found = out.view(np.int32).reshape(200, 32, 2)
    assert (found == found[:, :1]).all()
    [count] = set(found[:, 0, 1].tolist())
    assert set(found[:, 0, 0].tolist()) == set(range(count))
    assert report.invented == ("%nsmid", "%smid")


def test_a_kernel_that_asks_for_nothing_of_the_kind_is_told_nothing(build: Build, run: Run) -> None:
    body = f"{ADDRESS} st.global.u64 [%p0], %p0;"
    out: Any = np.zeros(32, np.int64)
    assert run(build(body, 1), 1, 32, [Buffer("out", out)]).invented == ()
