"""Shared memory, local memory and tables of the module: exact limits, no neighbours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.emulator.report import WrongAccess
from specrepro.repro.errors import UnsupportedError
from specrepro.repro.records import Kind

Build = Callable[..., Kernel]
Run = Callable[..., LaunchReport]
DECLARE = ".reg .b64 %at, %x; .reg .b32 %v;"


def only(report: LaunchReport) -> WrongAccess:
    (access,) = report.accesses
    return access


SHARED = """
.shared .align 4 .b8 table[24];
mov.u64 %x, table;
mul.wide.s32 %at, %t, 4; add.s64 %at, %at, %x;
.loc 1 7 0
st.shared.u32 [%at], %t;
bar.sync 0;
ld.shared.u32 %v, [table+4];
mad.wide.s32 %at, %i, 4, %p0; st.global.u32 [%at], %v;"""


def test_shared_memory_ends_at_its_exact_size(build: Build, run: Run) -> None:
    out = np.zeros(14, np.int32)
    report = run(build(SHARED, 1, DECLARE), 2, 7, [Buffer("out", out)])
    access = only(report)
    assert access.kind is Kind.SHARED_OUT_OF_BOUNDS
    assert access.buffer is None
    assert access.elements.tolist() == [24, 25, 26, 27]
    assert (access.bytes_past_end, access.width, access.threads, access.line) == (0, 4, 2, 7)
    assert access.lands_in == "outside shared memory of 24 bytes"
    assert out.tolist() == [1] * 14
    assert run(build(SHARED, 1, DECLARE), 2, 6, [Buffer("out", out)]).accesses == ()


def test_dynamic_shared_memory_follows_the_static_and_has_the_size_of_the_launch(
    build: Build, run: Run
) -> None:
    body = """
    .shared .align 4 .b8 first[4];
    mov.u32 %v, 77; st.shared.u32 [first], %v;
    mul.wide.s32 %at, %t, 4; mov.u64 %x, rest; add.s64 %at, %at, %x;
    cvta.shared.u64 %at, %at;
    st.u32 [%at], %t;
    ld.shared.u32 %v, [first];
    mad.wide.s32 %at, %i, 4, %p0; st.global.u32 [%at], %v;"""
    header = ".extern .shared .align 8 .b8 rest[];\n.visible"
    text_kernel = build(body, 1, DECLARE)
    assert text_kernel.variables.keys() == {"first"}
    source = f""".version 8.8
.target sm_80
.address_size 64
{header} .entry k(.param .u64 p0)
{{
.reg .b64 %p0; .reg .b32 %i, %t; {DECLARE}
ld.param.u64 %p0, [p0]; mov.u32 %t, %tid.x; mov.u32 %i, %t;
{body}
ret;
}}"""
    built = parse(source).kernels["k"]
    out = np.zeros(4, np.int32)
    assert run(built, 1, 4, [Buffer("out", out)], shared_bytes=16).accesses == ()
    assert out.tolist() == [77] * 4
    access = only(run(built, 1, 4, [Buffer("out", out)], shared_bytes=12))
    assert access.elements.tolist() == [20, 21, 22, 23]


def test_misaligned_shared_accesses_are_recorded(build: Build, run: Run) -> None:
    body = """
    .shared .align 8 .b8 table[64];
    mov.u64 %x, table; mul.wide.s32 %at, %t, 2; add.s64 %at, %at, %x;
    st.shared.u32 [%at], %t;"""
    access = only(run(build(body, 0, DECLARE), 1, 3, []))
    assert (access.kind, access.buffer) == (Kind.MISALIGNED_ACCESS, None)
    assert access.elements.tolist() == [2, 3, 4, 5]
    assert access.lands_in == "shared memory"


def test_local_memory_is_private_and_ends_at_its_size(build: Build, run: Run) -> None:
    body = """
    .local .align 4 .b8 own[8];
    mov.u64 %x, own; st.local.u32 [%x], %t; st.local.u32 [%x+4], %t;
    ld.local.u32 %v, [own];
    mad.wide.s32 %at, %i, 4, %p0; st.global.u32 [%at], %v;
    cvta.local.u64 %x, %x;
    .loc 1 9 0
    st.u32 [%x+8], %t;"""
    out = np.zeros(4, np.int32)
    access = only(run(build(body, 1, DECLARE), 1, 4, [Buffer("out", out)]))
    assert out.tolist() == [0, 1, 2, 3]
    assert (access.kind, access.buffer, access.line) == (Kind.OUT_OF_BOUNDS_WRITE, None, 9)
    assert access.elements.tolist() == [8, 9, 10, 11]


TABLE = """.version 8.8
.target sm_80
.address_size 64
.global .align 4 .b32 table[3] = {7, -8, 0x9};
.const .align 4 .f32 half = 0f3F000000;
.entry k(.param .u64 p0)
{
.reg .b64 %p, %at, %x; .reg .b32 %i, %v, %w;
ld.param.u64 %p, [p0]; mov.u32 %i, %tid.x;
mov.u64 %x, table; cvta.global.u64 %x, %x; mad.wide.s32 %at, %i, 4, %x;
ld.const.b32 %w, [half];
ld.global.nc.b32 %v, [%at];
@@
xor.b32 %v, %v, %w;
mad.wide.s32 %at, %i, 4, %p; st.global.b32 [%at], %v;
ret;
}"""


def test_tables_of_the_module_are_read_and_end_at_their_size(run: Run) -> None:
    built = parse(TABLE.replace("@@", "")).kernels["k"]
    out = np.zeros(4, np.int32)
    access = only(run(built, 1, 4, [Buffer("out", out)]))
    assert [value ^ 0x3F000000 for value in out.tolist()] == [7, -8, 9, 0]
    assert (access.kind, access.buffer) == (Kind.OUT_OF_BOUNDS_READ, None)
    assert access.elements.tolist() == [12, 13, 14, 15]
    assert access.lands_in == "outside table of 12 bytes"


def test_a_variable_of_the_module_keeps_what_a_launch_writes(run: Run) -> None:
    built = parse(TABLE.replace("@@", "st.global.b32 [%x], 5;")).kernels["k"]
    out = np.zeros(3, np.int32)
    for first in (7, 5):
        assert run(built, 1, 3, [Buffer("out", out)]).accesses == ()
        assert [value ^ 0x3F000000 for value in out.tolist()] == [first, -8, 9]


def test_a_write_to_constant_memory_is_refused(run: Run) -> None:
    text = TABLE.replace("@@", "mov.u64 %x, half; st.global.b32 [%x], 5;")
    with pytest.raises(UnsupportedError, match="a write to half, which is constant"):
        run(parse(text).kernels["k"], 1, 3, [Buffer("out", np.zeros(3, np.int32))])
