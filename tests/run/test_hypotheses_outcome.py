"""The outcome of a trial: which accesses end a device, on which stage, and else what is served."""

from dataclasses import replace
from typing import Any

import pytest

from specrepro.repro.hypotheses import ILLEGAL, RIGHT, WRONG, TrialOutcome, outcome
from specrepro.repro.records import Finding, Kind, Service, Status, Trial, TrialResult

GOOD = Service(finished=True, tokens_right=True, drafted=0, accepted=0, speculated=True)
MIB = 1 << 20


def result(*findings: Finding, service: Service | None = GOOD, **changes: Any) -> TrialResult:
    trial = Trial("case", "h", "reference", {}, Status.UNKNOWN)
    status = Status.FAULT if findings else Status.CLEAN
    stages = {"launch_stages": [[0, 9, 0], [10, 19, 1], [20, 29, 0]]}
    made = TrialResult(trial, status, findings=findings, service=service, metrics=stages)
    return replace(made, **changes)


def past(distance: int, *, launch: int = 12, elements: int = 1, width: int = 4) -> Finding:
    """A read of so many elements, the first one `distance` bytes past the end of its tensor."""
    return Finding(
        Kind.OUT_OF_BOUNDS_READ,
        launch=launch,
        tensor="state",
        elements=(1000, 999 + elements),
        bytes_past_end=distance,
        width=width,
    )


def before(first: int, last: int = -1, *, width: int = 4) -> Finding:
    kind = Kind.OUT_OF_BOUNDS_WRITE
    return Finding(kind, launch=12, tensor="state", elements=(first, last), width=width)


@pytest.mark.parametrize(
    ("finding", "faults"),
    [
        (past(0), False),
        (past(2 * MIB - 4), False),
        (past(2 * MIB), True),
        (past(0, elements=MIB // 2), False),  # the last one starts 4 bytes short of the granule
        (past(0, elements=MIB // 2 + 1), True),
        (past(MIB, elements=MIB // 2 + 1, width=2), True),
        (past(MIB, elements=MIB // 2, width=2), False),
        (before(-1), False),
        (before(1 - MIB // 2), False),
        (before(-MIB // 2), True),
        (before(-MIB, -MIB, width=2), True),
        (before(1 - MIB, width=2), False),
        (Finding(Kind.MISALIGNED_ACCESS, launch=12, tensor="state", elements=(0, 0)), True),
        (Finding(Kind.OUT_OF_BOUNDS_READ, launch=12, elements=(0, 0), width=4), True),
    ],
)
def test_a_device_stops_only_where_an_access_leaves_the_mapping(
    finding: Finding, faults: bool
) -> None:
    wrong = replace(GOOD, tokens_right=False)
    illegal = TrialOutcome(ILLEGAL, 1)
    assert outcome(result(finding)) == (illegal if faults else TrialOutcome(RIGHT))
    assert outcome(result(finding, service=wrong)) == (illegal if faults else TrialOutcome(WRONG))


def test_the_stage_is_that_of_the_first_launch_that_leaves_the_mapping() -> None:
    near, far, later = past(0, launch=3), past(4 * MIB, launch=12), past(4 * MIB, launch=25)
    assert outcome(result(near, later, far)) == TrialOutcome(ILLEGAL, 1)
    assert outcome(result(near, later)) == TrialOutcome(ILLEGAL, 0)
    assert outcome(result(replace(far, launch=99))) == TrialOutcome(ILLEGAL, None)


def test_what_a_device_would_not_notice_counts_by_its_text() -> None:
    foreign = Finding(Kind.FOREIGN_WRITE, launch=12)
    assert outcome(result(foreign)) == TrialOutcome(RIGHT)
    wrong = replace(GOOD, tokens_right=False)
    assert outcome(result(foreign, service=wrong)) == TrialOutcome(WRONG)
    assert outcome(result(service=replace(GOOD, finished=False))) == TrialOutcome(WRONG)
    assert outcome(result(service=None)) == TrialOutcome(WRONG)


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.ERROR, Status.TIMEOUT, Status.SKIPPED])
def test_a_trial_without_an_answer_has_no_outcome(status: Status) -> None:
    assert outcome(result(status=status)) is None


def test_a_trial_that_was_stopped_has_no_outcome() -> None:
    assert outcome(result(Finding(Kind.FOREIGN_READ, launch=1), stopped=True)) is None
