"""Device functions, recursion, structures by value, printf, assert, live variables."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.checks import ALL
from specrepro.repro.emulator.launch import Buffer, LaunchReport, Structure
from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.errors import LaunchRefusedError, UnsupportedError
from specrepro.repro.records import Kind

Run = Callable[..., LaunchReport]
HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"


def span(count: int, data: Buffer) -> Structure:
    return Structure(struct.pack("<ifQ", count, 2.0, 0), {8: data})


def test_functions_take_and_give_structures(calls: dict[str, Kernel], run: Run) -> None:
    data = np.arange(8, dtype=np.float32) + 0.5
    out, numbers = np.zeros(32, np.float32), np.zeros(32, np.int32)
    args = [span(8, Buffer("data", data)), Buffer("out", out), Buffer("numbers", numbers)]
    report = run(calls["calls"], 1, 32, args, checks=ALL)
    assert report.accesses == ()
    wanted = [
        (data[i] * (i + (i & 3)) + (i + 5)) * 2 + [1, 2, 2, 3][2 * (i & 1) + (i & 1)]
        for i in range(8)
    ]
    assert out[:8].tolist() == wanted
    assert not out[8:].any()
    assert numbers.tolist() == [i if i & 1 else i + 1 for i in range(32)]


def test_a_pointer_in_a_structure_keeps_the_limits_of_its_buffer(
    calls: dict[str, Kernel], run: Run
) -> None:
    args = [
        span(9, Buffer("data", np.zeros(8, np.float32))),
        Buffer("out", np.zeros(32, np.float32)),
        Buffer("numbers", np.zeros(32, np.int32)),
    ]
    (access,) = run(calls["calls"], 1, 32, args).accesses
    assert (access.kind, access.buffer) == (Kind.OUT_OF_BOUNDS_READ, "data")
    assert (access.elements.tolist(), access.bytes_past_end) == ([8], 0)
    assert access.file == "calls.cu"


def test_printf_formats_as_c_does(calls: dict[str, Kernel], run: Run) -> None:
    data = Buffer("data", np.zeros(8, np.float32))
    out, numbers = Buffer("o", np.zeros(32, np.float32)), Buffer("n", np.zeros(32, np.int32))
    report = run(calls["calls"], 2, 32, [span(0, data), out, numbers])
    assert report.printed == "3  2.00 text x 1099511627776|7   |00ff\n" * 2


def test_variables_of_the_module_live_on(calls: dict[str, Kernel], run: Run) -> None:
    kernel = calls["calls"]
    args = [
        span(0, Buffer("data", np.zeros(1, np.float32))),
        Buffer("out", np.zeros(32, np.float32)),
        Buffer("numbers", np.zeros(32, np.int32)),
    ]
    for launches in (1, 2):
        run(kernel, 1, 32, args)
        (counter,) = kernel.statics.content["counter"].data.view(np.int32)
        assert counter == 5 + 32 * launches


def test_a_failed_assertion_ends_its_threads_and_is_told(
    calls: dict[str, Kernel], run: Run
) -> None:
    out = np.full(32, -1, np.int32)
    (access,) = run(calls["checked"], 1, 32, [Buffer("out", out), 20]).accesses
    assert (access.kind, access.threads, access.thread) == (Kind.TRAP, 12, (20, 0, 0))
    assert access.message == "calls.cu:40: checked: assertion `i < limit` failed"
    assert out.tolist() == [*range(20), *[-1] * 12]


def test_functions_call_themselves(calls: dict[str, Kernel], run: Run) -> None:
    out = np.zeros(32, np.int32)
    assert run(calls["recursive"], 1, 32, [Buffer("out", out), 3]).accesses == ()
    assert out.tolist() == [[2, 3, 5][i % 3] for i in range(32)]


def test_recursion_deeper_than_what_is_followed_is_refused(
    calls: dict[str, Kernel], run: Run
) -> None:
    with pytest.raises(UnsupportedError, match="a function calls itself more than"):
        run(calls["recursive"], 1, 32, [Buffer("out", np.zeros(32, np.int32)), 40])


def test_barriers_count_threads_and_wait_for_arrivals(calls: dict[str, Kernel], run: Run) -> None:
    out = np.zeros(64, np.int32)
    report = run(calls["counted"], 1, 64, [Buffer("out", out), 40], checks=ALL)
    assert report.accesses == ()
    assert out.tolist() == [140 + (30000 * (t - 32) if t >= 32 else 0) for t in range(64)]
    run(calls["counted"], 1, 64, [Buffer("out", out), 64])
    assert out[:32].tolist() == [1064] * 32


def kernel(text: str) -> Kernel:
    return parse(HEADER + text).kernels["k"]


PIECES = """.func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 p[16])
{
.reg .b16 %h; .reg .b32 %x<5>; .reg .b64 %l;
ld.param.b64 %l, [p+8];
ld.param.v2.b32 {%x1, %x2}, [p];
ld.param.u16 %h, [p+2];
cvt.u32.u16 %x3, %h;
ld.param.s8 %x4, [p+1];
st.param.b64 [r], %l;
st.param.b32 [r+8], %x3;
st.param.b8 [r+12], %x4;
st.param.b8 [r+13], 7;
st.param.b16 [r+14], %h;
ret;
}
.entry k(.param .u64 o)
{
.reg .b64 %o, %l; .reg .b32 %x<5>;
ld.param.u64 %o, [o];
{
.param .align 8 .b8 p[16];
.param .align 8 .b8 r[16];
st.param.b32 [p], 0x12348056;
st.param.v2.b32 [p+4], {1, 2};
st.param.b32 [p+12], 3;
call.uni (r), swap, (p);
ld.param.b64 %l, [r];
ld.param.v2.b32 {%x1, %x2}, [r+8];
}
st.global.b64 [%o], %l;
st.global.v2.b32 [%o+8], {%x1, %x2};
ret;
}"""


def test_structures_are_taken_apart_in_pieces_of_any_size(run: Run) -> None:
    out = np.zeros(4, np.uint32)
    assert run(kernel(PIECES), 1, 1, [Buffer("o", out)]).accesses == ()
    assert out.tolist() == [2, 3, 0x1234, 0x12340780]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("call f, (p, p);", "2 arguments for f"),
        ("call f, (q);", "other sizes"),
        ("call unknown, (p);", "unknown has no body here"),
        ("call %at, (p), prototype;", "an indirect call"),
        ("call vprintf, (p);", "vprintf takes 2 arguments"),
    ],
)
def test_calls_that_fit_nothing_are_refused(call: str, message: str, run: Run) -> None:
    text = f""".func f(.param .b32 a) {{ ret; }}
    .entry k() {{ .reg .b64 %at; .param .b32 p; .param .b64 q; {call} ret; }}"""
    with pytest.raises(UnsupportedError, match=message):
        run(kernel(text), 1, 32, [])


def test_a_chain_of_doubling_functions_is_refused_as_too_long(run: Run) -> None:
    parts = [".func f0() { membar.cta; ret; }"]
    parts += [
        f".func f{n}() {{ call f{n - 1}, (); call f{n - 1}, (); ret; }}" for n in range(1, 40)
    ]
    text = "\n".join([*parts, ".entry k() { call f39, (); ret; }"])
    with pytest.raises(UnsupportedError, match="instructions with its functions"):
        run(kernel(text), 1, 32, [])


def test_a_structure_of_another_size_is_refused(run: Run) -> None:
    built = kernel(".entry k(.param .align 8 .b8 s[16]) { ret; }")
    with pytest.raises(LaunchRefusedError, match="s takes 16 bytes"):
        run(built, 1, 1, [bytes(12)])


ADDRESSED = """.entry k(.param .align 4 .b8 s[12], .param .u64 o)
{
.reg .b64 %a, %o; .reg .b32 %t, %v;
mov.u32 %t, %tid.x; ld.param.u64 %o, [o];
mov.b64 %a, s; cvta.param.u64 %a, %a;
mad.wide.u32 %a, %t, 4, %a; mad.wide.u32 %o, %t, 4, %o;
ld.param.b32 %v, [%a];
st.global.b32 [%o], %v;
ret;
}"""


def test_structures_are_indexed_and_end_at_their_size(run: Run) -> None:
    out = np.zeros(4, np.int32)
    (access,) = run(
        kernel(ADDRESSED), 1, 4, [struct.pack("<3i", 7, 8, 9), Buffer("o", out)]
    ).accesses
    assert out.tolist() == [7, 8, 9, 0]
    assert (access.kind, access.lands_in) == (Kind.OUT_OF_BOUNDS_READ, "outside s of 12 bytes")


POINTING = """.global .align 4 .u32 numbers[3] = {10, 20, 30};
.global .align 8 .b8 packed[12] = {5, 0, 0, 0, 0xFF(generic(numbers)+4),
 0xFF00(generic(numbers)+4), 0xFF0000(generic(numbers)+4), 0xFF000000(generic(numbers)+4),
 0xFF00000000(generic(numbers)+4), 0xFF0000000000(generic(numbers)+4),
 0xFF000000000000(generic(numbers)+4), 0xFF00000000000000(generic(numbers)+4)};
.global .align 8 .u64 chain[2] = {packed, generic(chain)};
.entry k(.param .u64 o)
{
.reg .b64 %o, %a, %b; .reg .b32 %v, %w<3>;
ld.param.u64 %o, [o];
ld.global.u64 %a, [chain+8];
ld.global.u64 %a, [%a];
ld.global.u32 %w1, [%a+4]; ld.global.u32 %w2, [%a+8];
mov.b64 %b, {%w1, %w2};
ld.global.u32 %v, [%b];
st.global.u32 [%o], %v;
ret;
}"""


def test_initial_values_hold_addresses_of_variables(run: Run) -> None:
    out = np.zeros(1, np.int32)
    assert run(kernel(POINTING), 1, 1, [Buffer("o", out)]).accesses == ()
    assert out.tolist() == [20]


def test_an_indexed_branch_goes_to_the_target_of_its_index(run: Run) -> None:
    text = """.entry k(.param .u64 o)
    {
    .reg .b64 %o; .reg .b32 %t, %v;
    ld.param.u64 %o, [o]; mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 4, %o;
    mov.u32 %v, 0;
    targets: .branchtargets two, one, three;
    brx.idx %t, targets;
    one: add.u32 %v, %v, 1; bra.uni done;
    two: add.u32 %v, %v, 2; bra.uni done;
    three: add.u32 %v, %v, 3;
    done: st.global.u32 [%o], %v;
    ret;
    }"""
    out = np.zeros(4, np.int32)
    (access,) = run(kernel(text), 1, 4, [Buffer("o", out)]).accesses
    assert out.tolist() == [2, 1, 3, 0]
    assert (access.kind, access.thread) == (Kind.TRAP, (3, 0, 0))


def test_what_is_printed_is_capped(run: Run) -> None:
    text = """.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
    .global .align 1 .b8 f[6] = {37, 49, 48, 48, 100, 0};
    .entry k()
    {
    .local .align 8 .b8 own[8];
    .reg .b64 %f, %a; .reg .b32 %t;
    mov.u64 %f, f; mov.u64 %a, own; mov.u32 %t, %tid.x; st.local.u32 [%a], %t;
    cvta.local.u64 %a, %a;
    .param .b64 p; .param .b64 q; .param .b32 r;
    st.param.b64 [p], %f; st.param.b64 [q], %a;
    call (r), vprintf, (p, q);
    ret;
    }"""
    printed = run(kernel(text), 40, 32, []).printed
    assert printed.startswith(f"{0:100d}{1:100d}")
    assert len(printed) < 70_000
    assert printed.endswith("characters is kept]\n")


def test_memory_that_printf_is_pointed_at_need_not_be_there(run: Run) -> None:
    text = """.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
    .entry k()
    {
    .param .b64 p; .param .b64 q; .param .b32 r;
    st.param.b64 [p], 12345; st.param.b64 [q], 0;
    call (r), vprintf, (p, q);
    ret;
    }"""
    report: Any = run(kernel(text), 1, 32, [])
    assert report.printed == ""
