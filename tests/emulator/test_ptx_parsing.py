"""What PTX text is read as, and how what is not known is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.launch import Buffer, LaunchReport, prepare
from specrepro.repro.emulator.ptx import Kernel, Place, parse
from specrepro.repro.errors import LaunchRefusedError, UnsupportedError

Build = Callable[..., Kernel]
Run = Callable[..., LaunchReport]
HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"
DECLARE = ".reg .b64 %at; .reg .b32 %v<4>; .reg .b16 %h; .reg .f32 %f; .reg .pred %q;"
STORE = "mad.wide.s32 %at, %i, 4, %p0; st.global.u32 [%at], %v1;"


def test_parameters_and_shape_of_a_kernel() -> None:
    text = (
        HEADER
        + """
.visible .entry first(
    .param .u64 .ptr .global .align 16 first_param_0,
    .param .u32 first_param_1,
    .param .f32 first_param_2
)
.reqntid 64, 2
{
    .shared .align 16 .b8 a[3];
    .shared .align 8 .f32 b[4];
    ret;
}
.weak .func (.param .b32 out) helper(.param .b32 in) { .reg .b32 %r; { ret; } }
.entry second() { ret; }
"""
    )
    module = parse(text)
    first = module.kernels["first"]
    assert [(p.name[-1], p.type) for p in first.params] == [
        ("0", "u64"),
        ("1", "u32"),
        ("2", "f32"),
    ]
    assert first.reqntid == (64, 2, 1)
    assert first.shared_bytes == 24
    assert first.shared_offsets == {"a": 0, "b": 8}
    assert (module.version, module.target) == ("8.8", "sm_80")
    assert module.kernels["second"].params == ()


def test_registers_of_an_inner_scope_hide_outer_ones(build: Build, run: Run) -> None:
    body = f"""
    mov.u32 %v1, 5;
    {{ .reg .b32 %v1; .reg .pred %q; mov.u32 %v1, 7; setp.eq.s32 %q, %v1, 7;
       @%q bra skip; mov.u32 %v2, 1; skip: mov.u32 %v2, %v1; }}
    {{ skip: .reg .b32 tmp<2>; mov.b32 tmp1, 30; add.s32 %v2, %v2, tmp1; }}
    add.s32 %v1, %v1, %v2;
    {STORE}"""
    out = np.zeros(2, np.int32)
    run(build(body, 1, DECLARE), 1, 2, [Buffer("out", out)])
    assert out.tolist() == [42, 42]


def test_comments_and_hints_are_no_instructions(build: Build, run: Run) -> None:
    body = f"""
    // mov.u32 %v1, 1;
    /* mov.u32
       %v1, 2; */ mov.u32 %v1, 3; // trailing ; {{
    .pragma "nounroll";
    {STORE}"""
    out = np.zeros(1, np.int32)
    run(build(body, 1, DECLARE), 1, 1, [Buffer("out", out)])
    assert out.tolist() == [3]


def test_the_line_is_that_of_the_innermost_frame_in_the_kernels_own_file() -> None:
    text = (
        HEADER
        + """
.entry k()
{
    .reg .b32 %r<9>;
    .loc 1 10 0
    mov.u32 %r0, 0;
    .loc 2 50 3, function_name $name, inlined_at 1 12 5
    mov.u32 %r1, 0;
    .loc 1 30 1, function_name $name, inlined_at 2 50 3
    mov.u32 %r2, 0;
    .loc 2 60 3, function_name $name + 4, inlined_at 1 13 5
    .loc 3 70 1, function_name $name, inlined_at 2 60 3
    mov.u32 %r3, 0;
    .loc 2 60 3, function_name $name, inlined_at 1 14 5
    .loc 3 70 1, function_name $name, inlined_at 2 60 3
    mov.u32 %r4, 0;
    .loc 1 0 3
    mov.u32 %r5, 0;
    .loc 2 80 3
    mov.u32 %r6, 0;
    ret;
}
.file 1 "kernels/k.py"
.file 2 "lib.py", 1700000000, 4096
.file 3 "deep.py"
"""
    )
    places = [instruction.place for instruction in parse(text).kernels["k"].body]
    assert [place.line for place in places] == [10, 12, 30, 13, 14, 14, 80, 80]
    assert {place.file for place in places[:6]} == {"kernels/k.py"}
    assert places[6] == Place("lib.py", 80)


def test_inline_assembly_belongs_to_one_line() -> None:
    text = (
        HEADER
        + """.entry k()
{
    .reg .b32 %r<9>;
    .loc 1 3 0
    mov.u32 %r0, 0;
    // begin inline asm
    .loc 1 7 2
    mov.u32 %r1, 0;
    .loc 1 8 2
    mov.u32 %r2, 0;
    // end inline asm
    .loc 1 9 2
    ret;
}
.file 1 "k.py"
"""
    )
    places = [instruction.place.line for instruction in parse(text).kernels["k"].body]
    assert places == [3, 7, 7, 9]


def test_sections_of_debug_data_are_skipped() -> None:
    text = (
        HEADER
        + """.entry k() { ret; }
    .section .debug_str
    {
    $L__info: .b8 114 // }
    .b8 0
    }
    .section .debug_macinfo { }
"""
    )
    assert parse(text).kernels.keys() == {"k"}


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("mov.u32 %v1, %envreg1;", "%envreg1 has no meaning here"),
        ("tex.2d.v4.f32.f32 {%v1, %v1, %v1, %v1}, [%at, {%v1, %v1}];", "tex.2d.v4.f32.f32 is not"),
        ("wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned is not supported"),
        ("add.rm.f16 %h, %h, %h;", "only f32 and f64 are rounded"),
        ("ld.global.b128 %at, [%at];", "ld.global.b128"),
        ("ld.global.async.b32 %v1, [%at];", "ld.global.async.b32"),
        ("fma.rn.relu.f32 %f, %f, %f, %f;", "fma.rn.relu.f32"),
        ("shfl.down.b32 %v1, %v1, 1, 31;", "shfl.down.b32"),
        ("bar.arrive 0;", "an arrival without a number of threads"),
        ("bar.red.popc.u32 %v1, %q;", "bar.red.popc.u32"),
        ("mov.b128 %at, {%at, %at};", "mov.b128"),
        ("atom.global.exch.b128 %at, [%at], %at;", "atom.global.exch.b128"),
        ("mul.lo.b32 %v1, %v1, %v1;", "mul.lo.b32"),
        ("setp.lt.b32 %q, %v1, %v1;", "setp.lt.b32"),
        ("add.s32 %at, %v1, %v1;", "%at has type .b64"),
        ("add.f32 %f, %f, 1;", "an integer literal where a float is expected"),
        ("cvt.f16.f32 %h, %f;", "cvt.f16.f32"),
        ("cvt.rn.f32.f16 %f, %h;", "cvt.rn.f32.f16"),
        ("st.global.b32 [%v1], %v1;", "an address of less than 64 bits"),
        ("call.uni (%v1), helper, (%v1);", "an argument that is no variable of .param space"),
        ("call.uni helper, ();", "helper has no body here"),
        ("call.uni %at, ();", "an indirect call"),
        (".calltargets here, there;", ".calltargets is not supported"),
        ("mov.u64 %at, nowhere;", "nowhere is not defined"),
        ("mov.u64 %at, constant;", "the address of nowhere, which is no variable"),
        ("ld.param.u32 %v1, [p7];", "p7 is not defined"),
        ("ld.param.u64 %at, [p0+4];", "bytes from 4 on of parameter p0"),
    ],
)
def test_what_is_not_executed_is_refused_before_anything_runs(
    instruction: str, message: str
) -> None:
    text = (
        HEADER
        + f""".const .align 8 .u64 constant[1] = {{generic(nowhere)}};
.entry k(.param .u64 p0) {{ {DECLARE}
{instruction}
ret; }}"""
    )
    with pytest.raises(UnsupportedError) as caught:
        prepare(parse(text).kernels["k"])
    assert message in caught.value.message
    assert caught.value.where is not None
    assert "PTX line 6" in caught.value.where


@pytest.mark.parametrize(
    "text",
    [
        "mov",
        ".entry k( {",
        ".entry k() {",
        ".entry k() { bra nowhere; }",
        ".entry k() { add.s32 %r1, %r2, %r3; }",
        ".entry k() { .reg .b32 %r<2>; add.s32 %r1 %r0; }",
        ".entry k() { .reg .b32 %r<2>; mov.b32 %r5, 0; }",
        ".entry k() { .reg .b32 %r<2>; mov.b32 %r1, 1.5x; }",
        ".entry k() { .reg .b32 %r; mov.b32 %r, 99999999999999999999999999999999999999999999; }",
        ".entry k() { .reg .b32 %r; mov.b32 %r, 08; }",
        ".entry k() { here: here: ret; }",
        ".entry k() { ret; } .entry k() { ret; }",
        ".entry k(.param .u32 a, .param .u32 a) { ret; }",
        ".entry k() { \x00 }",
        ".address_size 32",
        ".global .align 4 .b8 x[99999999999];",
        ".entry k() " + "{" * 100,
        ".entry k() { @%p bra x; x: ret; }",
        ".entry k() { .reg .b32 %r; @%r ret; }",
    ],
)
def test_malformed_text_is_unsupported_with_its_line(text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse(text)
    assert str(caught.value).startswith("PTX line 1: ")


def test_too_much_memory_is_refused() -> None:
    for declaration in (".shared .b8 x[999999];", ".local .b8 x[999999];"):
        text = HEADER + f".entry k() {{ {declaration} ret; }}"
        with pytest.raises(UnsupportedError, match="999999 "):
            prepare(parse(text).kernels["k"])


def test_launches_that_no_device_would_take_are_refused(build: Build, run: Run) -> None:
    built = build("", 1)
    data = Buffer("data", np.zeros((2, 2), np.int32))
    with pytest.raises(LaunchRefusedError, match="one-dimensional"):
        run(built, 1, 1, [data])
    fixed = np.zeros(2, np.int32)
    fixed.setflags(write=False)
    with pytest.raises(LaunchRefusedError, match="can be written to"):
        run(built, 1, 1, [Buffer("data", fixed)])
    for blocks, threads, args in ((0, 1, []), (1, 1025, []), (1, 0, []), (1, 1, [0, 0])):
        with pytest.raises(LaunchRefusedError):
            run(built, blocks, threads, args)
    scalar = parse(HEADER + ".entry k(.param .u32 a) { ret; }").kernels["k"]
    for value in (1 << 32, -(1 << 31) - 1, 0.5, Buffer("x", np.zeros(1))):
        with pytest.raises(LaunchRefusedError):
            run(scalar, 1, 1, [value])
    assert run(scalar, 1, 1, [(1 << 32) - 1]).accesses == ()
    with pytest.raises(LaunchRefusedError, match="compiled for"):
        run(parse(HEADER + ".entry k() .reqntid 32 { ret; }").kernels["k"], 1, 64, [])
    with pytest.raises(LaunchRefusedError, match="shared memory"):
        run(built, 1, 1, [], shared_bytes=1 << 20)


def test_scalars_arrive_with_their_bits(run: Run) -> None:
    text = (
        HEADER
        + """.entry k(.param .u64 out, .param .s32 i, .param .f32 f, .param .b32 g,
    .param .s64 l, .param .f64 d, .param .u64 scratch)
{
.reg .b64 %o, %l; .reg .b32 %v; .reg .f32 %f; .reg .f64 %d;
ld.param.u64 %o, [out];
ld.param.s32 %v, [i]; st.global.b32 [%o], %v;
ld.param.f32 %f, [f]; st.global.f32 [%o+4], %f;
ld.param.b32 %v, [g]; st.global.b32 [%o+8], %v;
ld.param.u64 %l, [l]; st.global.b64 [%o+16], %l;
ld.param.f64 %d, [d]; st.global.f64 [%o+24], %d;
ld.param.u64 %l, [scratch]; st.global.u64 [%o+32], %l;
ret;
}"""
    )
    out = np.full(5, 7, np.int64)
    built = parse(text).kernels["k"]
    assert run(built, 1, 1, [Buffer("out", out), -2, 1.5, 2.5, -3, 0.1]).accesses == ()
    assert out[0] & 0xFFFFFFFF == 0xFFFFFFFE
    assert out.view(np.float32)[[1, 2]].tolist() == [1.5, 2.5]
    assert out[[2, 4]].tolist() == [-3, 0]
    assert out.view(np.float64)[3] == 0.1


def test_values_of_registers_never_written_are_zero(build: Build, run: Run) -> None:
    out = np.full(2, 9, np.int32)
    built: Any = build("add.s32 %v1, %v2, %v3;" + STORE, 1, DECLARE)
    run(built, 1, 2, [Buffer("out", out)])
    assert out.tolist() == [0, 0]
