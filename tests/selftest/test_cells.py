"""What counts as seen, and what does not: decided from findings alone."""

from __future__ import annotations

import pytest

from specrepro.repro.records import Finding, Kind, Source
from specrepro.repro.selftest.cells import (
    INSTRUMENTS,
    Cell,
    Observed,
    State,
    all_seen,
    cell,
    cell_without_run,
    runs,
)
from specrepro.repro.selftest.faults import FAULTS, Fault

RACE = Fault("shared_race", "a race", Kind.SHARED_RACE, None, (0, 255))
WRITE = Fault(
    "next_write",
    "a write",
    Kind.OUT_OF_BOUNDS_WRITE,
    "out",
    (64, 127),
    past=0,
    hidden="valid memory",
)
HANG = Fault("hang", "a hang", Kind.HANG)
CONTROL = Fault("clean", "nothing", None)
LINES = (31,)


def write(**more: object) -> Finding:
    place = {"tensor": "out", "elements": (64, 127), "bytes_past_end": 0}
    given = place | {"source": Source("planted.cu", 31)} | more
    return Finding(Kind.OUT_OF_BOUNDS_WRITE, **given)  # type: ignore[arg-type]


def judged(fault: Fault, seen: Observed, instrument: str = "emulator") -> tuple[str, bool]:
    one = cell(fault, instrument, seen, LINES)
    return str(one.state), one.ok


def test_the_planted_finding_at_its_place_is_seen() -> None:
    assert judged(WRITE, Observed((write(),))) == ("seen", True)


@pytest.mark.parametrize(
    "found",
    [
        (),
        (write(elements=(64, 126)),),
        (write(tensor="in"),),
        (write(bytes_past_end=4),),
        (write(source=Source("planted.cu", 30)),),
        (write(source=None),),
        (Finding(Kind.OUT_OF_BOUNDS_READ, tensor="out", elements=(64, 127)),),
        (write(), Finding(Kind.TRAP)),
    ],
    ids=["none", "elements", "tensor", "distance", "line", "no line", "kind", "one too many"],
)
def test_anything_else_than_the_planted_finding_is_not_seen(found: tuple[Finding, ...]) -> None:
    assert judged(WRITE, Observed(found)) == ("not seen", False)


def test_the_reference_has_lines_of_its_own() -> None:
    found = write(source=Source("repro/selftest/reference.py", 5))
    assert judged(WRITE, Observed((found,)), "reference") == ("seen", True)


def test_what_was_not_looked_at_to_its_end_is_unknown_and_no_success() -> None:
    for fault in (WRITE, CONTROL):
        assert judged(fault, Observed(reason="ended by SIGKILL")) == ("unknown", False)
    assert judged(WRITE, Observed((write(),), reason="cut")) == ("unknown", False)


def test_the_control_may_have_neither_findings_nor_warnings() -> None:
    assert judged(CONTROL, Observed()) == ("clean", True)
    assert judged(CONTROL, Observed((write(),))) == ("false finding", False)
    assert judged(CONTROL, Observed(warnings=1)) == ("false finding", False)


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (Observed(reason="the process executing it: no end within 10 s"), ("unknown", True)),
        (
            Observed(reason="the launch did not end within 20000000 instructions"),
            ("unknown", True),
        ),
        (Observed(), ("not seen", False)),
        (Observed((write(),)), ("not seen", False)),
        (Observed(reason="no such file"), ("not seen", False)),
    ],
)
def test_a_hang_is_unknown_because_of_a_limit_and_nothing_else(
    seen: Observed, wanted: tuple[str, bool]
) -> None:
    assert judged(HANG, seen) == wanted


def test_an_access_to_valid_memory_cannot_be_seen_by_any_lane_on_a_device() -> None:
    states = {name: cell_without_run(WRITE, name, "none here").state for name in INSTRUMENTS[2:]}
    assert set(states.values()) == {State.CANNOT}
    assert runs(WRITE, "reference")
    assert runs(WRITE, "emulator")


def test_an_instrument_that_could_see_and_does_not_run_says_why() -> None:
    one = cell_without_run(RACE, "racecheck", "no driver")
    assert (one.state, one.detail) == (State.NOT_RUN, "no driver")
    other = cell_without_run(RACE, "memcheck", "no driver")
    assert (other.state, other.detail) == (State.CANNOT, "memcheck does not show shared_race")
    assert not runs(RACE, "racecheck")
    assert not runs(RACE, "reference")


def good(fault: Fault) -> Cell:
    state = {None: State.CLEAN, Kind.HANG: State.UNKNOWN}.get(fault.kind, State.SEEN)
    return Cell("emulator", state, True, "")


def test_all_is_seen_only_if_each_fault_was_seen_by_somebody_and_nothing_is_amiss() -> None:
    rows = [(fault, [good(fault)]) for fault in FAULTS]
    assert all_seen(rows)
    assert not all_seen(rows[1:])
    for number, (fault, cells) in enumerate(rows):
        unseen = [Cell("plain", State.NOT_RUN, True, ""), Cell("x", State.CANNOT, True, "")]
        assert not all_seen([*rows[:number], (fault, unseen), *rows[number + 1 :]])
        amiss = [*cells, Cell("memcheck", State.UNKNOWN, False, "")]
        assert not all_seen([*rows[:number], (fault, amiss), *rows[number + 1 :]])
