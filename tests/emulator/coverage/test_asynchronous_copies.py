"""cp.async: what is copied lands when its group is waited for, and not before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel
from specrepro.repro.errors import UnsupportedError
from specrepro.repro.records import Kind

Run = Callable[..., LaunchReport]
Build = Callable[..., Kernel]
DECLARE = """.shared .align 16 .b8 tile[1024];
.reg .b32 %s, %m, %v, %z<4>; .reg .b64 %x, %y; .reg .pred %q;"""
START = """mov.u32 %m, tile; shl.b32 %s, %t, 4; add.u32 %s, %s, %m;
mad.wide.u32 %x, %t, 16, %p0; mad.wide.u32 %y, %t, 16, %p1;
mov.b32 %v, -1; st.shared.v4.b32 [%s], {%v, %v, %v, %v};
"""
END = """ld.shared.v4.b32 {%z0, %z1, %z2, %z3}, [%s];
st.global.v4.b32 [%y], {%z0, %z1, %z2, %z3};"""


def result(build: Build, run: Run, body: str, source: Any = None) -> tuple[Any, LaunchReport]:
    """uint32[threads, 4] that 8 threads find in their 16 bytes, of a source 0, 1, 2..."""
    values = np.arange(32, dtype=np.uint32) if source is None else source
    out = np.zeros((8, 4), np.uint32)
    kernel = build(START + body + END, 2, DECLARE)
    report = run(kernel, 1, 8, [Buffer("source", values), Buffer("out", out.reshape(-1))])
    return out, report


COPY = "cp.async.cg.shared.global.L2::128B [%s], [%x], 16;"
BEFORE = np.full((8, 4), 0xFFFFFFFF, np.uint32)
AFTER = np.arange(32, dtype=np.uint32).reshape(8, 4)


def test_a_copy_lands_when_it_is_waited_for(build: Build, run: Run) -> None:
    assert np.array_equal(result(build, run, COPY)[0], BEFORE)
    assert np.array_equal(result(build, run, COPY + "cp.async.wait_all;")[0], AFTER)
    group = COPY + "cp.async.commit_group;"
    assert np.array_equal(result(build, run, group + "cp.async.wait_group 1;")[0], BEFORE)
    assert np.array_equal(result(build, run, group + "cp.async.wait_group 0;")[0], AFTER)


def test_an_open_group_is_not_waited_for_by_number(build: Build, run: Run) -> None:
    body = "cp.async.commit_group;" + COPY + "cp.async.wait_group 0;"
    assert np.array_equal(result(build, run, body)[0], BEFORE)


def test_the_last_groups_may_go_on(build: Build, run: Run) -> None:
    small = "cp.async.ca.shared.global [%s+{0}], [%x+{0}], 4; cp.async.commit_group;"
    body = "".join(small.format(4 * n) for n in range(4)) + "cp.async.wait_group 2;"
    out, _ = result(build, run, body)
    assert np.array_equal(out[:, :2], AFTER[:, :2])
    assert np.array_equal(out[:, 2:], BEFORE[:, 2:])


def test_threads_wait_for_their_own_groups(build: Build, run: Run) -> None:
    body = COPY + "setp.lt.u32 %q, %t, 3; @%q cp.async.wait_all;"
    out, _ = result(build, run, body)
    assert np.array_equal(out[:3], AFTER[:3])
    assert np.array_equal(out[3:], BEFORE[3:])


def test_what_the_source_does_not_give_is_zero(build: Build, run: Run) -> None:
    body = "cp.async.cg.shared.global [%s], [%x], 16, %t; cp.async.wait_all;"
    out, report = result(build, run, body)
    assert report.accesses == ()
    for thread in range(8):
        raw = AFTER[thread].tobytes()[:thread].ljust(16, b"\0")
        assert out[thread].tobytes() == raw


def test_only_bytes_that_are_copied_must_be_there(build: Build, run: Run) -> None:
    short = np.arange(30, dtype=np.uint32)
    masked = "mov.u32 %v, 16; setp.lt.u32 %q, %t, 7; selp.b32 %v, 16, 8, %q;"
    masked += "cp.async.cg.shared.global [%s], [%x], 16, %v; cp.async.wait_all;"
    out, report = result(build, run, masked, short)
    assert report.accesses == ()
    assert out[7].tolist() == [28, 29, 0, 0]
    out, report = result(build, run, COPY + "cp.async.wait_all;", short)
    (access,) = report.accesses
    assert (access.kind, access.buffer) == (Kind.OUT_OF_BOUNDS_READ, "source")
    assert access.elements.tolist() == [30, 31]
    assert (access.width, access.bytes_past_end) == (16, 0)


def test_a_copy_beyond_shared_memory_is_found_where_it_stands(build: Build, run: Run) -> None:
    body = "add.u32 %m, %s, 1008; cp.async.cg.shared.global [%m], [%x], 16;"
    _, report = result(build, run, body)
    (access,) = report.accesses
    assert access.kind == Kind.SHARED_OUT_OF_BOUNDS
    assert access.threads == 7
    assert access.elements.tolist() == list(range(1024, 1024 + 7 * 16))


@pytest.mark.parametrize(
    "text",
    [
        "cp.async.bulk.commit_group;",
        "cp.async.mbarrier.arrive.shared.b64 [%s];",
        "cp.async.cg.shared.global [%s], [%x], 8;",
        "cp.async.wait_group %t;",
    ],
)
def test_other_copies_are_refused_by_name(text: str, build: Build, run: Run) -> None:
    with pytest.raises(UnsupportedError) as caught:
        result(build, run, text)
    assert caught.value.message.startswith(text.split(" ")[0].rstrip(";"))
