"""What of a planted fault a lane on a GPU is said to have seen: decided from a trial's result."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.emulation.argument_file import load_arguments
from specrepro.repro.emulation.arguments import BufferSpec, Scalar
from specrepro.repro.emulation.memory import filled
from specrepro.repro.lanes.catalog import CATALOG
from specrepro.repro.records import (
    Evidence,
    Finding,
    Kind,
    Seen,
    Source,
    Status,
    Trial,
    TrialResult,
)
from specrepro.repro.selftest.cells import INSTRUMENTS, XID, sees
from specrepro.repro.selftest.device import LANES, order
from specrepro.repro.selftest.device_cells import CODES, DUMPED, device_cell, xid_cell
from specrepro.repro.selftest.device_child import calls
from specrepro.repro.selftest.faults import FAULTS, THREADS, Fault, marks

BY_NAME = {fault.name: fault.on_device() for fault in FAULTS}
LINES = marks()
WRITE, RACE = BY_NAME["far_write"], BY_NAME["shared_race"]
CONTROL, HANG, ASSERTION = BY_NAME["clean"], BY_NAME["hang"], BY_NAME["assertion"]
ILLEGAL = "CUDA_ERROR_ILLEGAL_ADDRESS (700) from cuCtxSynchronize, in launch 0 (far_write)"
DUMP = "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS · kernel far_write"


def result(status: Status, **values: Any) -> TrialResult:
    return TrialResult(Trial("selftest", "x", "plain", {}, status), status, **values)


def judged(fault: Fault, lane: str, of: TrialResult) -> tuple[str, bool]:
    cell = device_cell(fault, lane, of, LINES.get(fault.name, ()))
    return str(cell.state), cell.ok


def found(kind: Kind = Kind.OUT_OF_BOUNDS_WRITE, **more: Any) -> TrialResult:
    line = LINES["far_write"][0]
    given = {"tensor": "out", "elements": (64, 95), "source": Source("planted.cu", line)} | more
    return result(Status.FAULT, findings=(Finding(kind, **given),))


def dumped(said: str) -> TrialResult:
    return result(Status.FAULT, evidence=(Evidence("core dump", Seen.SEEN, said),))


def test_the_error_must_be_that_of_the_fault_that_was_planted() -> None:
    for lane in ("plain", "blocking"):
        stopped = result(Status.FAULT, reason=ILLEGAL, stopped=True)
        assert judged(WRITE, lane, stopped) == ("seen", True)
        other = result(Status.FAULT, reason=ILLEGAL.replace("700", "716"), stopped=True)
        assert judged(WRITE, lane, other) == ("not seen", False)
        assert judged(WRITE, lane, result(Status.FAULT, stopped=True)) == ("not seen", False)


def test_a_dump_must_be_of_that_exception() -> None:
    assert judged(WRITE, "coredump", dumped(DUMP)) == ("seen", True)
    other = dumped(DUMP.replace("ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS"))
    assert judged(WRITE, "coredump", other) == ("not seen", False)
    assert judged(WRITE, "coredump", result(Status.FAULT, reason=ILLEGAL)) == ("not seen", False)


@pytest.mark.parametrize(
    ("of", "wanted"),
    [
        (found(), ("seen", True)),  # fewer than were planted: the context ended at the first
        (found(source=None), ("seen", True)),  # the driver's compiler may leave lines out
        (found(elements=(64, 128)), ("not seen", False)),
        (found(elements=(63, 64)), ("not seen", False)),
        (found(elements=None), ("not seen", False)),
        (found(tensor="in"), ("not seen", False)),
        (found(source=Source("planted.cu", 1)), ("not seen", False)),
        (found(kind=Kind.OUT_OF_BOUNDS_READ), ("not seen", False)),
        (result(Status.FAULT, reason="error 719, site unknown"), ("not seen", False)),
        (result(Status.CLEAN), ("not seen", False)),
        (result(Status.UNKNOWN, reason="the tool was killed"), ("unknown", False)),
    ],
)
def test_a_tool_may_name_fewer_elements_and_none_other(
    of: TrialResult, wanted: tuple[str, bool]
) -> None:
    assert judged(WRITE, "memcheck", of) == wanted


def test_a_tool_that_locates_no_elements_need_not_name_them() -> None:
    at = Source("planted.cu", LINES["shared_race"][0])
    race = found(kind=Kind.SHARED_RACE, tensor=None, elements=None, source=at)
    assert judged(RACE, "racecheck", race) == ("seen", True)


def test_the_control_is_clean_or_falsely_blamed() -> None:
    assert judged(CONTROL, "memcheck", result(Status.CLEAN)) == ("clean", True)
    assert judged(CONTROL, "memcheck", found()) == ("false finding", False)
    killed = result(Status.UNKNOWN, reason="killed")
    assert judged(CONTROL, "memcheck", killed) == ("unknown", False)


def test_a_hang_is_unknown_because_of_its_limit_and_nothing_else() -> None:
    assert judged(HANG, "plain", result(Status.TIMEOUT, reason="no end within 10 s")) == (
        "unknown",
        True,
    )
    for status in (Status.CLEAN, Status.FAULT, Status.ERROR, Status.UNKNOWN):
        assert judged(HANG, "plain", result(status)) == ("not seen", False)


def xids(*states: Seen) -> TrialResult:
    sources = ("Xid by NVML", "Xid by kernel log")
    said = {Seen.SEEN: "Xid 31", Seen.NONE: "no Xid", Seen.UNOBSERVABLE: "no right"}
    evidence = tuple(Evidence(s, e, said[e]) for s, e in zip(sources, states, strict=True))
    return result(Status.FAULT, evidence=evidence)


@pytest.mark.parametrize(
    ("fault", "states", "wanted"),
    [
        (WRITE, (Seen.SEEN, Seen.UNOBSERVABLE), ("seen", True)),
        (WRITE, (Seen.NONE, Seen.SEEN), ("seen", True)),
        (WRITE, (Seen.NONE, Seen.UNOBSERVABLE), ("not seen", False)),
        (WRITE, (Seen.UNOBSERVABLE, Seen.UNOBSERVABLE), ("not run", True)),
        (ASSERTION, (Seen.NONE, Seen.NONE), ("not seen", True)),
        (CONTROL, (Seen.NONE, Seen.UNOBSERVABLE), ("clean", True)),
        (CONTROL, (Seen.NONE, Seen.SEEN), ("false finding", False)),
    ],
)
def test_silence_of_a_watcher_counts_only_where_it_could_see(
    fault: Fault, states: tuple[Seen, Seen], wanted: tuple[str, bool]
) -> None:
    cell = xid_cell(fault, xids(*states))
    assert cell is not None
    assert (str(cell.state), cell.ok) == wanted


def test_what_no_xid_is_expected_of_has_no_cell() -> None:
    assert xid_cell(RACE, xids(Seen.NONE, Seen.NONE)) is None


def test_every_lane_that_sees_a_fault_is_given_it_and_the_control_comes_first() -> None:
    given = list(order(dict.fromkeys(LANES)))
    for lane in LANES:
        mine = [fault for name, fault in given if name == lane]
        assert mine[0].kind is None
        wanted = {f.name for f in FAULTS if f.kind is None or sees(f, CATALOG[lane])}
        assert {f.name for f in mine} - {"hang"} == wanted
    assert given[-1][1].kind is Kind.HANG
    assert {*LANES} == {name for name in INSTRUMENTS if name in CATALOG and CATALOG[name].device}
    assert XID not in LANES


def test_what_plain_sees_has_an_error_and_an_exception_of_its_own() -> None:
    seen = {f.kind for f in FAULTS if f.kind is not None and sees(f, CATALOG["plain"])}
    assert seen == set(CODES) == set(DUMPED)


def test_on_a_device_a_kernel_is_given_what_its_argument_file_says() -> None:
    for name, given in calls().items():
        arguments, _ = load_arguments(BY_NAME[name].arguments)
        assert len(arguments.args) == len(given)
        buffers = {one.spec.name: one for one in filled(arguments)}
        for wanted, one in zip(arguments.args, given, strict=True):
            if isinstance(wanted.value, BufferSpec):
                each = buffers[wanted.value.name]
                assert (one.name, one.written) == (each.spec.name, each.written is None)
                if one.written:
                    assert one.value.tolist() == each.data.tolist()  # type: ignore[union-attr]
            elif one.name == "distance":
                assert one.value == THREADS  # the first element behind the buffer
            else:
                assert isinstance(wanted.value, Scalar)
                assert (one.type, one.value) == (wanted.value.type, wanted.value.value)
