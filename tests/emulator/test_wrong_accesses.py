"""Each kind of wrong access planted, with its exact elements, and the near miss beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator import launch as launching
from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel
from specrepro.repro.emulator.report import WrongAccess
from specrepro.repro.errors import UnsupportedError
from specrepro.repro.ops import EVERYBODY, NOBODY, Owners
from specrepro.repro.records import Kind

Array = np.ndarray[Any, Any]
Build = Callable[..., Kernel]
Run = Callable[..., LaunchReport]

# Thread i touches element index[i] of the second buffer; p0 index int32, p1 data, p2 result.
LOAD_INDEX = """
.loc 1 2 0
mad.wide.s32 %at, %i, 4, %p0;
ld.global.u32 %j, [%at];
"""
DECLARE = ".reg .b64 %at, %x; .reg .b32 %j, %v, %u; .reg .b16 %h; .reg .pred %q;"
STORE32 = LOAD_INDEX + ".loc 1 3 0\nmad.wide.s32 %at, %j, 4, %p1; st.global.u32 [%at], %i;"
LOAD32 = (
    LOAD_INDEX
    + """.loc 1 3 0
mad.wide.s32 %at, %j, 4, %p1; ld.global.u32 %v, [%at];
mad.wide.s32 %at, %i, 4, %p2; st.global.u32 [%at], %v;"""
)


def indices(*values: int) -> Buffer:
    return Buffer("index", np.array(values, np.int32))


def only(report: LaunchReport) -> WrongAccess:
    (access,) = report.accesses
    return access


def test_a_store_past_the_end_is_masked_and_located(build: Build, run: Run) -> None:
    data = np.full(8, 99, np.int32)
    report = run(
        build(STORE32, 2, DECLARE), 2, 4, [indices(0, 7, 8, 3, 10, 1, 11, 2), Buffer("data", data)]
    )
    access = only(report)
    assert access.kind is Kind.OUT_OF_BOUNDS_WRITE
    assert access.buffer == "data"
    assert access.elements.tolist() == [8, 10, 11]
    assert (access.bytes_past_end, access.width, access.threads) == (0, 4, 3)
    assert (access.block, access.thread) == ((0, 0, 0), (2, 0, 0))
    assert (access.file, access.line, access.request) == ("kernel.cu", 3, None)
    assert access.lands_in == "unmapped memory"
    assert data.tolist() == [0, 5, 7, 3, 99, 99, 99, 1]


def test_the_last_element_is_no_overrun(build: Build, run: Run) -> None:
    data = np.zeros(8, np.int32)
    report = run(build(STORE32, 2, DECLARE), 1, 8, [indices(*range(8)), Buffer("data", data)])
    assert report.accesses == ()
    assert data.tolist() == list(range(8))


def test_loads_outside_give_zero_and_elements_before_the_start_are_negative(
    build: Build, run: Run
) -> None:
    data, out = np.arange(1, 5, dtype=np.int32), np.full(4, 99, np.int32)
    report = run(
        build(LOAD32, 3, DECLARE),
        1,
        4,
        [indices(-1, 3, -6, 0), Buffer("data", data), Buffer("out", out)],
    )
    access = only(report)
    assert access.kind is Kind.OUT_OF_BOUNDS_READ
    assert access.elements.tolist() == [-6, -1]
    assert access.bytes_past_end is None
    assert out.tolist() == [0, 4, 0, 1]


def test_an_address_that_overflows_32_bits_keeps_its_buffer(build: Build, run: Run) -> None:
    body = """
    mul.wide.s32 %at, %i, 4; mov.b64 %x, 2147483648; add.s64 %at, %at, %x;
    add.s64 %at, %at, %p0; st.global.u32 [%at], %i;"""
    access = only(run(build(body, 1, DECLARE), 1, 2, [Buffer("data", np.zeros(4, np.int32))]))
    assert access.buffer == "data"
    assert access.elements.tolist() == [1 << 29, (1 << 29) + 1]
    assert access.bytes_past_end == (1 << 31) - 16


def test_a_wide_access_partly_outside_is_masked_whole_and_names_what_is_outside(
    build: Build, run: Run
) -> None:
    body = """
    mad.wide.s32 %at, %i, 16, %p0;
    st.global.v4.b32 [%at], {%i, %i, %i, %i};"""
    data = np.full(6, 9, np.int32)
    access = only(run(build(body, 1, DECLARE), 1, 2, [Buffer("data", data)]))
    assert access.elements.tolist() == [6, 7]
    assert (access.bytes_past_end, access.width, access.threads) == (0, 16, 1)
    assert data.tolist() == [0, 0, 0, 0, 9, 9]


def test_elements_count_in_the_dtype_of_the_buffer_not_of_the_access(
    build: Build, run: Run
) -> None:
    access = only(
        run(build(STORE32, 2, DECLARE), 1, 1, [indices(2), Buffer("half", np.zeros(4, np.float16))])
    )
    assert access.elements.tolist() == [4, 5]
    assert access.width == 4


def test_a_misaligned_access_is_recorded_and_masked(build: Build, run: Run) -> None:
    body = """
    mad.wide.s32 %at, %i, 4, %p0;
    st.global.v2.b32 [%at], {%i, %i};"""
    data = np.full(8, 9, np.int32)
    access = only(run(build(body, 1, DECLARE), 1, 4, [Buffer("data", data)]))
    assert access.kind is Kind.MISALIGNED_ACCESS
    assert access.elements.tolist() == [1, 2, 3, 4]
    assert (access.threads, access.thread, access.width) == (2, (1, 0, 0), 8)
    assert data.tolist() == [0, 0, 2, 2, 9, 9, 9, 9]


def test_alignment_is_that_of_the_memory_not_of_the_offset(build: Build, run: Run) -> None:
    body = "mad.wide.s32 %at, %i, 8, %p0; ld.global.b64 %x, [%at];"
    base = np.zeros(10, np.int32)
    assert run(build(body, 1, DECLARE), 1, 4, [Buffer("data", base)]).accesses == ()
    shifted = only(run(build(body, 1, DECLARE), 1, 4, [Buffer("data", base[1:9])]))
    assert shifted.kind is Kind.MISALIGNED_ACCESS
    body = "mad.wide.s32 %at, %i, 8, %p0; ld.global.b64 %x, [%at+4];"
    clean = run(build(body, 1, DECLARE), 1, 4, [Buffer("data", base[1:10])])
    assert clean.accesses == ()


def test_reads_of_stated_memory_behind_are_recorded_and_return_it(build: Build, run: Run) -> None:
    out = np.full(5, 9, np.int32)
    data = Buffer("data", np.arange(4, dtype=np.int32), behind=np.array([70, 71], np.int32))
    report = run(
        build(LOAD32, 3, DECLARE), 1, 5, [indices(3, 4, 5, 6, -1), data, Buffer("out", out)]
    )
    access = only(report)
    assert access.kind is Kind.OUT_OF_BOUNDS_READ
    assert access.elements.tolist() == [-1, 4, 5, 6]
    assert out.tolist() == [3, 70, 71, 0, 0]
    report = run(build(LOAD32, 3, DECLARE), 1, 2, [indices(4, 5), data, Buffer("out", out)])
    assert only(report).lands_in == "stated memory behind data"
    report = run(build(STORE32, 2, DECLARE), 1, 1, [indices(4), data])
    assert only(report).lands_in == "unmapped memory"


def test_an_overrun_into_a_neighbour_of_the_same_allocation_is_found_and_named(
    build: Build, run: Run
) -> None:
    both = np.zeros(16, np.int32)
    key, value = both[:8], both[8:]
    report = run(
        build(STORE32, 3, DECLARE),
        1,
        2,
        [indices(7, 9), Buffer("key", key), Buffer("value", value)],
    )
    access = only(report)
    assert (access.buffer, access.elements.tolist()) == ("key", [9])
    assert access.lands_in == "value[1]"
    assert value.tolist() == [0] * 8


def test_null_and_made_up_pointers_belong_to_no_buffer(build: Build, run: Run) -> None:
    null = only(run(build(STORE32, 2, DECLARE), 1, 2, [indices(0, 3), None]))
    assert (null.kind, null.buffer) == (Kind.OUT_OF_BOUNDS_WRITE, None)
    assert null.lands_in == "null pointer"
    made = only(run(build(STORE32, 2, DECLARE), 1, 1, [indices(0), 0x7FFF00000000]))
    assert made.lands_in == "no tensor"
    negative = only(run(build(STORE32, 2, DECLARE), 1, 1, [indices(0), -(1 << 50)]))
    assert negative.lands_in == "no tensor"


def owned(data: Array, unit: int, *owners: int) -> Buffer:
    return Buffer("data", data, Owners(unit, np.array(owners, np.int32)))


def test_a_foreign_write_is_recorded_and_executed(build: Build, run: Run) -> None:
    data = np.full(8, 9, np.int32)
    report = run(
        build(STORE32, 2, DECLARE),
        4,
        1,
        [indices(0, 2, 5, 6), owned(data, 2, 0, 2, 1, EVERYBODY)],
        requests=np.array([0, 1, 2, 0], np.int32),
    )
    first, second = report.accesses
    assert (first.kind, first.elements.tolist(), first.request) == (Kind.FOREIGN_WRITE, [2], 1)
    assert first.lands_in == "request 2's unit 1 of data"
    assert (first.block, first.bytes_past_end, first.threads) == ((1, 0, 0), None, 1)
    assert (second.elements.tolist(), second.request) == ([5], 2)
    assert second.lands_in == "request 1's unit 2 of data"
    assert data.tolist() == [0, 9, 1, 9, 9, 2, 3, 9]


def test_a_foreign_read_is_recorded_and_executed_and_free_units_are_foreign_to_all(
    build: Build, run: Run
) -> None:
    data, out = np.arange(10, 16, dtype=np.int32), np.zeros(3, np.int32)
    report = run(
        build(LOAD32, 3, DECLARE),
        3,
        1,
        [indices(0, 2, 4), owned(data, 2, 5, NOBODY, 7), Buffer("out", out)],
        requests=np.array([5, 5, 7], np.int32),
    )
    access = only(report)
    assert (access.kind, access.elements.tolist()) == (Kind.FOREIGN_READ, [2])
    assert access.lands_in == "a free unit of data"
    assert out.tolist() == [10, 12, 14]


def test_a_request_that_is_everybody_is_not_checked(build: Build, run: Run) -> None:
    args = [indices(0, 1), owned(np.zeros(2, np.int32), 1, 3, NOBODY)]
    report = run(build(STORE32, 2, DECLARE), 2, 1, args, requests=np.full(2, EVERYBODY, np.int32))
    assert report.accesses == ()
    assert run(build(STORE32, 2, DECLARE), 2, 1, args).accesses == ()


def test_only_the_foreign_elements_of_a_wide_access_are_named(build: Build, run: Run) -> None:
    body = "mad.wide.s32 %at, %i, 16, %p0; st.global.v4.b32 [%at], {%i, %i, %i, %i};"
    report = run(
        build(body, 1, DECLARE),
        1,
        1,
        [owned(np.zeros(4, np.int32), 1, 0, 1, 0, 2)],
        requests=np.zeros(1, np.int32),
    )
    assert only(report).elements.tolist() == [1, 3]


def test_atomics_outside_do_nothing_and_find_zero(build: Build, run: Run) -> None:
    body = (
        LOAD_INDEX
        + """
    mad.wide.s32 %at, %j, 4, %p1; atom.global.add.u32 %v, [%at], 5;
    mad.wide.s32 %at, %i, 4, %p2; st.global.u32 [%at], %v;"""
    )
    data, out = np.array([1, 2], np.int32), np.full(3, 9, np.int32)
    report = run(
        build(body, 3, DECLARE), 1, 3, [indices(1, 2, 1), Buffer("data", data), Buffer("out", out)]
    )
    assert only(report).kind is Kind.OUT_OF_BOUNDS_WRITE
    assert only(report).elements.tolist() == [2]
    assert (data.tolist(), out.tolist()) == ([1, 12], [2, 0, 7])


def test_a_trap_ends_its_threads_and_is_located(build: Build, run: Run) -> None:
    body = """
    setp.eq.s32 %q, %t, 2;
    .loc 1 5 0
    @%q trap;
    mad.wide.s32 %at, %i, 4, %p0; st.global.u32 [%at], %t;"""
    out = np.full(4, 9, np.int32)
    access = only(run(build(body, 1, DECLARE), 1, 4, [Buffer("out", out)]))
    assert (access.kind, access.thread, access.threads) == (Kind.TRAP, (2, 0, 0), 1)
    assert (access.line, access.elements.size, access.buffer) == (5, 0, None)
    assert out.tolist() == [0, 1, 9, 3]


def test_stop_at_first_ends_the_launch_and_reports_that_one_alone(build: Build, run: Run) -> None:
    body = STORE32 + " st.global.u32 [%at+4], %i; mov.u32 %v, 5; st.global.u32 [%p1], %v;"
    data = np.zeros(2, np.int32)
    args = [indices(5), Buffer("data", data)]
    assert len(run(build(body, 2, DECLARE), 1, 1, args).accesses) == 1
    assert data[0] == 5
    data[0] = 0
    stopped = run(build(body, 2, DECLARE), 1, 1, args, stop_at_first=True)
    assert only(stopped).elements.tolist() == [5]
    assert stopped.instructions > 0
    assert data[0] == 0


def test_records_split_by_line_and_request_and_merge_over_threads(build: Build, run: Run) -> None:
    body = STORE32 + ".loc 1 4 0\nst.global.u32 [%at], %i;"
    report = run(
        build(body, 2, DECLARE),
        3,
        1,
        [indices(5, 6, 7), Buffer("data", np.zeros(1, np.int32))],
        requests=np.array([4, 4, 8], np.int32),
    )
    assert [(a.line, a.request, a.elements.tolist()) for a in report.accesses] == [
        (3, 4, [5, 6]),
        (3, 8, [7]),
        (4, 4, [5, 6]),
        (4, 8, [7]),
    ]


def test_many_small_batches_report_what_one_large_batch_reports(
    build: Build, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [int(n) for n in np.random.default_rng(3).integers(-3, 30, 24 * 40)]
    built = build(STORE32, 2, DECLARE)

    def go() -> tuple[list[Any], list[int]]:
        data = np.zeros(24, np.int32)
        report = run(built, 24, 40, [indices(*wrong), Buffer("data", data)])
        found = [
            (a.kind, a.elements.tolist(), a.threads, a.block, a.thread, a.bytes_past_end)
            for a in report.accesses
        ]
        return found, data.tolist()

    whole = go()
    monkeypatch.setattr(launching, "LANES", 64)
    assert go() == whole
    assert whole[0][0][2] == sum(not 0 <= n < 24 for n in wrong)


def test_a_launch_without_end_is_unsupported_not_clean(build: Build, run: Run) -> None:
    with pytest.raises(UnsupportedError, match="did not end within 1000 instructions"):
        run(build("again: bra again;", 0), 1, 32, [], max_instructions=1000)
