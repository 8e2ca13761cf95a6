"""Launches that are decided without being executed say exactly what executing them says."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from specrepro.repro.emulator.checks import ALL
from specrepro.repro.emulator.launch import Buffer, LaunchReport, launch
from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.errors import UnsupportedError
from specrepro.repro.ops import Owners
from specrepro.repro.records import Kind

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"
Triple = tuple[int, int, int]

# if (i < n) out[i] = left[i] + right[i], as NVRTC compiles it
GUARDED = """
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [n];
    setp.ge.s32 %p1, %r4, %r5;
    @%p1 bra DONE;
    ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];
    cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2;
    mul.wide.s32 %d3, %r4, 4;
    add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
    ld.global.f32 %f1, [%d4];
    add.f32 %f1, %f1, %f1;
    st.global.f32 [%d5], %f1;
DONE:
    ret;
"""


def kernel(body: str) -> Kernel:
    text = f"""{HEADER}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{{
.reg .pred %p<40>; .reg .b32 %r<90>; .reg .b64 %d<90>; .reg .f32 %f<9>;
.loc 1 1 0
{body}
}}
.file 1 "k.cu"
"""
    return parse(text).kernels["k"]


def launched(
    code: Kernel,
    grid: Triple,
    block: Triple,
    sizes: tuple[int, int],
    n: int,
    *,
    outputs: bool,
    **more: Any,
) -> tuple[LaunchReport, np.ndarray[Any, Any]]:
    """a: written by somebody, b: by nobody; float32 of `sizes`. And which bytes of b are, then."""
    left = np.arange(sizes[0], dtype=np.float32)
    right = np.zeros(sizes[1], np.float32)
    written = np.zeros(right.nbytes, np.bool_)
    arguments = [Buffer("a", left), Buffer("b", right, initialised=written), n]
    report = launch(code, grid, block, arguments, checks=ALL, outputs=outputs, marks=True, **more)
    return report, written


def said(report: LaunchReport) -> list[dict[str, Any]]:
    rows = [dataclasses.asdict(access) for access in report.accesses]
    return [{**row, "elements": row["elements"].tolist()} for row in rows]


def both(code: Kernel, grid: Triple, block: Triple, sizes: tuple[int, int], n: int) -> LaunchReport:
    """The decided launch, compared with the executed one."""
    executed, written = launched(code, grid, block, sizes, n, outputs=True)
    decided, marked = launched(code, grid, block, sizes, n, outputs=False)
    assert executed.decided == 0
    assert said(decided) == said(executed)
    assert (decided.checks, decided.invented) == (executed.checks, executed.invented)
    assert decided.unmarked == ()
    np.testing.assert_array_equal(marked, written)
    if decided.decided:
        assert decided.decided == grid[0] * grid[1] * grid[2]
        assert not executed.warnings
    else:
        assert [w.buffer for w in decided.warnings] == [w.buffer for w in executed.warnings]
    return decided


def test_a_guarded_kernel_is_clean_for_all_blocks_without_executing_one() -> None:
    report = both(kernel(GUARDED), (40, 1, 1), (128, 1, 1), (5000, 5000), 5000)
    assert report.decided == 40
    assert report.accesses == ()


def test_the_one_element_too_many_is_found_at_its_thread() -> None:
    report = both(kernel(GUARDED), (40, 1, 1), (128, 1, 1), (5000, 5000), 5001)
    assert report.decided == 40
    assert [(a.kind, a.buffer, a.elements.tolist()) for a in report.accesses] == [
        (Kind.OUT_OF_BOUNDS_READ, "a", [5000]),
        (Kind.OUT_OF_BOUNDS_WRITE, "b", [5000]),
    ]
    assert {(a.block, a.thread) for a in report.accesses} == {((39, 0, 0), (8, 0, 0))}


def test_the_same_arguments_on_other_buffers_are_found_out_anew() -> None:
    code, shape = kernel(GUARDED), ((4, 1, 1), (32, 1, 1))

    def found(sizes: tuple[int, int]) -> list[tuple[str | None, int]]:
        report = both(code, *shape, sizes, 120)
        assert report.decided == 4
        return [(access.buffer, int(access.elements[0])) for access in report.accesses]

    assert found((120, 120)) == []
    assert found((119, 120)) == [("a", 119)]
    assert found((120, 64)) == [("b", 64)]
    assert found((120, 120)) == []
    # nobody has written the last element that is read: that is told by executing it
    unwritten = np.ones(480, np.bool_)
    unwritten[-4:] = False
    arguments = [
        Buffer("a", np.zeros(120, np.float32), initialised=unwritten),
        Buffer("b", np.zeros(120, np.float32)),
        120,
    ]
    report = launch(code, *shape, arguments, checks=ALL, outputs=False)
    assert report.decided == 0
    assert [(a.kind, a.elements.tolist()) for a in report.accesses] == [
        (Kind.UNINITIALISED_READ, [119])
    ]


def test_what_nobody_wrote_between_two_reads_does_not_keep_a_launch_from_being_decided() -> None:
    body = """
    ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];
    ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d1+8];
    st.global.f32 [%d2], %f1;
    ret;
    """
    written = np.array([1, 0, 1], np.bool_).repeat(4)
    arguments = [
        Buffer("a", np.zeros(3, np.float32), initialised=written),
        Buffer("b", np.zeros(1, np.float32)),
    ]
    report = launch(kernel(body), (1, 1, 1), (1, 1, 1), arguments, checks=ALL, outputs=False)
    assert (report.decided, report.accesses) == (1, ())


def test_a_million_blocks_take_as_many_steps_as_one() -> None:
    size = 1_000_000 * 128
    arguments = [
        Buffer("a", np.empty(size, np.int8)),
        Buffer("b", np.empty(size, np.int8)),
        size // 4,
    ]
    report = launch(
        kernel(GUARDED), (1_000_000, 1, 1), (128, 1, 1), arguments, checks=ALL, outputs=False
    )
    assert report.decided == 1_000_000
    assert report.accesses == ()
    assert report.instructions < 20


def test_what_many_blocks_write_is_marked_where_they_follow_each_other_along_x() -> None:
    for axis, blocks, unmarked in (("x", 100_000, ()), ("y", 2_000, ("b",))):
        code = kernel(GUARDED.replace("%ctaid.x", f"%ctaid.{axis}"))
        grid, n = (blocks, 1, 1) if axis == "x" else (1, blocks, 1), 32 * blocks - 1
        report, written = launched(code, grid, (32, 1, 1), (n + 1, n + 1), n, outputs=False)
        assert (report.decided, report.accesses, report.unmarked) == (blocks, (), unmarked)
        # all but the last element, or nothing: it is not guessed
        assert written.nonzero()[0].size == (0 if unmarked else 4 * n)


def test_a_block_that_is_no_multiple_of_a_warp_has_no_lane_too_many() -> None:
    report = both(kernel(GUARDED), (3, 1, 1), (40, 1, 1), (120, 120), 1000)
    assert report.decided == 3


def test_what_cannot_be_decided_is_executed() -> None:
    loaded = """
    ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];
    mov.u32 %r3, %tid.x; mul.wide.u32 %d3, %r3, 4; add.s64 %d4, %d1, %d3;
    ld.global.u32 %r4, [%d4];
    mul.wide.s32 %d5, %r4, 4; add.s64 %d6, %d2, %d5;
    mov.f32 %f1, 0f00000000;
    st.global.f32 [%d6], %f1;
    ret;
    """
    report = both(kernel(loaded), (1, 1, 1), (32, 1, 1), (32, 8), 0)
    assert report.decided == 0
    assert report.accesses


def test_blocks_that_write_one_place_are_executed_and_the_race_is_told() -> None:
    everybody = """
    ld.param.u64 %d2, [b]; mov.u32 %r3, %tid.x; mul.wide.u32 %d3, %r3, 4; add.s64 %d4, %d2, %d3;
    mov.u32 %r4, %ctaid.x; st.global.u32 [%d4], %r4;
    ret;
    """
    report = both(kernel(everybody), (4, 1, 1), (32, 1, 1), (32, 32), 0)
    assert report.decided == 0
    assert [race.buffer for race in report.warnings] == ["b"]


def test_a_read_of_what_nobody_wrote_is_executed_and_told() -> None:
    swapped = GUARDED.replace("[a]", "[x]").replace("[b]", "[a]").replace("[x]", "[b]")
    report = both(kernel(swapped), (1, 1, 1), (32, 1, 1), (32, 32), 32)
    assert report.decided == 0
    assert [a.kind for a in report.accesses] == [Kind.UNINITIALISED_READ]


def test_owners_are_looked_at_by_executing() -> None:
    owners = Owners(16, np.zeros(4, np.int32))
    data = np.zeros(64, np.float32)
    arguments = [Buffer("a", data, owners), Buffer("b", data.copy()), 64]
    requests = np.arange(2, dtype=np.int32)
    report = launch(
        kernel(GUARDED),
        (2, 1, 1),
        (32, 1, 1),
        arguments,
        requests=requests,
        checks=ALL,
        outputs=False,
    )
    assert report.decided == 0
    assert [a.kind for a in report.accesses] == [Kind.FOREIGN_READ]


@pytest.mark.parametrize("outputs", [True, False])
def test_an_instruction_that_is_refused_is_refused_either_way(outputs: bool) -> None:
    with pytest.raises(UnsupportedError):
        launched(
            kernel("wgmma.fence.sync.aligned; ret;"),
            (1, 1, 1),
            (32, 1, 1),
            (8, 8),
            0,
            outputs=outputs,
        )


# --- generated kernels -----------------------------------------------------------------------
WITH_NUMBER = [
    "add.s32",
    "sub.s32",
    "mul.lo.s32",
    "and.b32",
    "or.b32",
    "xor.b32",
    "shl.b32",
    "shr.s32",
    "shr.u32",
    "min.s32",
    "max.s32",
    "div.u32",
    "rem.u32",
    "div.s32",
    "rem.s32",
    "max.u32",
]
WITH_REGISTER = [
    "add.s32",
    "sub.s32",
    "or.b32",
    "and.b32",
    "min.s32",
    "max.s32",
    "mul.lo.s32",
    "xor.b32",
]
NUMBERS = [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 64, -1, -2, -16, 100]
STARTS = ["%tid.x", "%tid.y", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%ntid.x", "%nctaid.x", "%laneid"]
KINDS = ["number", "register", "compare", "access", "branch", "close", "leave", "number", "access"]
COMPARED = ["lt.s32", "ge.s32", "le.u32", "gt.s32", "eq.s32", "ne.s32", "hs.u32"]


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Arithmetic on coordinates, guards, forward branches, a loop of few rounds; then accesses."""
    lines = [f"mov.u32 %r{n}, {name};" for n, name in enumerate(STARTS)]
    lines += [f"mad.lo.s32 %r8, %r2, {draw(st.sampled_from([8, 16, 32, 40]))}, %r0;"]
    lines += ["ld.param.u64 %d1, [a];", "ld.param.u64 %d2, [b];", "ld.param.u32 %r9, [n];"]
    known, guards, labels = 10, 0, 0
    open_labels: list[str] = []
    for _ in range(draw(st.integers(2, 12))):
        kind = draw(st.sampled_from(KINDS))
        one = draw(st.integers(max(0, known - 5), known - 1) | st.integers(0, known - 1))
        other = draw(st.integers(0, known - 1))
        given = (
            f"@{draw(st.sampled_from(['', '!']))}%p{draw(st.integers(0, guards - 1))} "
            if guards
            else ""
        )
        if kind == "number":
            number = draw(st.sampled_from(NUMBERS))
            lines.append(f"{draw(st.sampled_from(WITH_NUMBER))} %r{known}, %r{one}, {number};")
            known += 1
        elif kind == "register":
            target = draw(st.sampled_from([known, one]))
            maybe = draw(st.sampled_from(["", given]))
            lines.append(
                f"{maybe}{draw(st.sampled_from(WITH_REGISTER))} %r{target}, %r{one}, %r{other};"
            )
            known += target == known and not maybe
        elif kind == "compare" and guards < 30:
            against = draw(st.sampled_from([f"%r{other}", *map(str, NUMBERS)]))
            lines.append(f"setp.{draw(st.sampled_from(COMPARED))} %p{guards}, %r{one}, {against};")
            guards += 1
        elif kind == "access":
            store = draw(st.booleans())
            scale = draw(st.sampled_from([4, 4, 4, 8]))
            lines.append(f"mul.wide.s32 %d3, %r{one}, {scale};")
            lines.append(f"add.s64 %d4, %d{2 if store else 1}, %d3;")
            offset = draw(st.sampled_from([0, 0, 4, 64]))
            maybe = draw(st.sampled_from(["", given]))
            lines.append(
                f"{maybe}st.global.u32 [%d4+{offset}], %r0;"
                if store
                else f"{maybe}ld.global.u32 %r80, [%d4+{offset}];"
            )
        elif kind == "branch" and given and labels < 4:
            open_labels.append(f"L{labels}")
            labels += 1
            lines.append(f"{given}bra {open_labels[-1]};")
        elif kind == "close" and open_labels:
            lines.append(f"{open_labels.pop()}:")
        elif kind == "leave" and given:
            lines.append(f"{given}ret;")
    lines += [f"{label}:" for label in reversed(open_labels)]
    lines += [
        f"mul.wide.s32 %d3, %r{known - 1}, 4;",
        "add.s64 %d4, %d1, %d3;",
        "ld.global.u32 %r80, [%d4];",
    ]
    return "\n".join([*lines, "ret;"])


GRIDS = st.tuples(st.integers(1, 5), st.integers(1, 2), st.integers(1, 2))
BLOCKS = st.sampled_from([(8, 1, 1), (32, 1, 1), (40, 1, 1), (8, 4, 1)])
SIZES = st.tuples(st.integers(1, 300), st.integers(1, 300))


@settings(max_examples=300)
@given(
    bodies(),
    st.lists(st.tuples(GRIDS, BLOCKS, SIZES, st.integers(-5, 300)), min_size=1, max_size=3),
)
def test_generated_kernels_come_out_as_when_they_are_executed(
    body: str, launches: list[tuple[Triple, Triple, tuple[int, int], int]]
) -> None:
    code = kernel(body)  # one, so that what was found for a launch is there for the next
    for launch_ in (*launches, launches[0]):
        report = both(code, *launch_)
        event(f"decided: {report.decided > 0}, wrong accesses: {bool(report.accesses)}")


def test_what_was_found_for_a_launch_is_not_taken_for_another_one() -> None:
    code = kernel(GUARDED)
    grid, block = (4, 1, 1), (128, 1, 1)
    for n, sizes in ((512, (512, 512)), (512, (511, 512)), (500, (512, 400)), (512, (512, 512))):
        report = both(code, grid, block, sizes, n)
        assert report.decided == 4
        assert len(report.accesses) == (n > sizes[0]) + (n > sizes[1])


@pytest.mark.parametrize("grid", [(7, 1, 1), (3, 4, 1), (2, 3, 4)])
def test_tiles_of_a_matrix_are_decided_on_grids_of_every_rank(grid: Triple) -> None:
    tile = """
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
    shl.b32 %r4, %r1, 5; or.b32 %r5, %r4, %r0;
    setp.lt.s32 %p1, %r5, 70;
    mad.lo.s32 %r6, %r3, 6, %r2;
    setp.lt.and.s32 %p2, %r2, 3, %p1;
    mad.lo.s32 %r7, %r6, 70, %r5;
    mul.wide.s32 %d3, %r7, 4;
    ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
    @%p2 ld.global.u32 %r8, [%d4];
    @%p2 st.global.u32 [%d5], %r8;
    ret;
    """
    report = both(kernel(tile), grid, (32, 1, 1), (400, 2000), 0)
    assert report.decided == grid[0] * grid[1] * grid[2]
    assert bool(report.accesses) == (grid[2] == 4)
