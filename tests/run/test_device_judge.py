"""What trials on a device say: a fault counts, silence does not, and nothing unexplained passes."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.agreement import beyond, places
from specrepro.repro.device_judge import TIMING, outcomes_of, weigh_device
from specrepro.repro.plan import Wanted
from specrepro.repro.records import (
    AFTERWARDS,
    Evidence,
    Finding,
    Kind,
    Place,
    Prediction,
    Seen,
    Service,
    Status,
    Trial,
    TrialResult,
)

WRITE = Prediction(Kind.OUT_OF_BOUNDS_WRITE, "kv_write", "key_cache", (8, 9))
FOREIGN = Prediction(Kind.FOREIGN_WRITE, "kv_write", "key_cache", (8, 9))
FAULTY = Wanted((WRITE,), (), literal_clean=False, fix=False)
FIXED = Wanted((), (), literal_clean=True, fix=True)
SERVES = Service(True, True, 9, 9, True)
CUDA = Evidence("CUDA", Seen.SEEN, "error 700")


LOST = Evidence(AFTERWARDS, Seen.SEEN, "the driver does not show GPU 0 any more")


def wrote(first: int, last: int, launch: int = 4) -> Finding:
    return Finding(Kind.OUT_OF_BOUNDS_WRITE, launch, "kv_write", "key_cache", (first, last), step=2)


def trial(status: Status, lane: str = "plain", **values: Any) -> TrialResult:
    return TrialResult(Trial("c", "v", lane, {}, Status.FAULT), status, **values)


def test_a_device_fault_shows_what_was_expected_without_naming_it() -> None:
    said = weigh_device(FAULTY, trial(Status.FAULT, stopped=True, evidence=(CUDA,)), "plain", ())
    assert (said.shown, said.agrees, said.wrong) == (True, False, ())


def test_silence_is_no_evidence_and_clean_under_blocking_says_timing() -> None:
    plain = weigh_device(FAULTY, trial(Status.CLEAN), "plain", ())
    assert (plain.wrong, plain.shown) == ((), False)
    assert "no evidence against it" in plain.unobserved[0]
    blocking = weigh_device(FAULTY, trial(Status.CLEAN, "blocking"), "blocking", ())
    assert TIMING in blocking.unobserved
    assert TIMING not in plain.unobserved


def test_a_fault_that_nothing_predicts_is_wrong() -> None:
    foreign = Wanted((FOREIGN,), (), literal_clean=False, fix=False)
    result = trial(Status.FAULT, stopped=True, evidence=(CUDA,))
    assert "error 700" in weigh_device(foreign, result, "plain", ()).wrong[0]
    assert "error 700" in weigh_device(FIXED, result, "plain", ()).wrong[0]


@pytest.mark.parametrize(
    ("service", "wrong"),
    [
        (SERVES, ()),
        (None, ("the fix is clean, but whether it serves was not seen",)),
        (Service(True, False, 9, 9, True), ("the fix does not serve",)),
    ],
)
def test_a_fix_must_serve(service: Service | None, wrong: tuple[str, ...]) -> None:
    result = trial(Status.CLEAN, service=service)
    assert weigh_device(FIXED, result, "plain", ()).wrong == wrong


@pytest.mark.parametrize(
    ("found", "agrees"),
    [
        ((wrote(8, 9),), True),
        ((wrote(8, 8),), True),  # the context ended before the other threads came
        ((wrote(8, 9, launch=-1),), True),
        ((wrote(8, 10),), False),
        ((wrote(8, 9, launch=5),), False),
    ],
)
def test_memcheck_must_name_nothing_that_the_reference_has_not(
    found: tuple[Finding, ...], agrees: bool
) -> None:
    result = trial(Status.FAULT, "memcheck", stopped=True, findings=found)
    reference = (wrote(8, 9), wrote(12, 13, launch=6))
    said = weigh_device(FAULTY, result, "memcheck", reference)
    assert (said.agrees, bool(said.wrong)) == (agrees, not agrees)


def test_without_a_reference_nothing_agrees() -> None:
    result = trial(Status.FAULT, "memcheck", stopped=True, findings=(wrote(8, 9),))
    said = weigh_device(FAULTY, result, "memcheck", ())
    assert (said.shown, said.agrees) == (True, False)


def test_what_is_not_located_contradicts_nothing() -> None:
    kinds = {Kind.OUT_OF_BOUNDS_WRITE}
    nowhere = Finding(Kind.OUT_OF_BOUNDS_WRITE, -1, "kv_write")
    assert beyond({}, places([nowhere], kinds)) == ""
    assert beyond({}, places([wrote(1, 2)], kinds))


def test_what_came_out_must_be_what_is_wanted_unless_a_fault_ended_it() -> None:
    lost = Prediction(Kind.ACCEPTANCE_LOSS, "rejection_sample", "draft_tokens", (0, 3))
    both = Wanted((WRITE, lost), (), literal_clean=False, fix=False)
    assert outcomes_of(both) == Wanted((lost,), (), literal_clean=False, fix=False)
    assert outcomes_of(FAULTY) is None
    missed = ["expected acceptance_loss, found none"]
    assert weigh_device(both, trial(Status.CLEAN), "plain", (), missed).wrong == tuple(missed)
    ended = trial(Status.FAULT, stopped=True, evidence=(CUDA,))
    assert weigh_device(both, ended, "plain", (), missed).shown


def test_an_error_that_names_nothing_on_a_gpu_that_was_lost_is_neither_for_nor_against() -> None:
    ended = trial(Status.FAULT, stopped=True, evidence=(CUDA, LOST))
    for wanted in (FAULTY, FIXED):
        said = weigh_device(wanted, ended, "plain", (wrote(8, 9),))
        assert (said.shown, said.wrong) == (False, ())
        assert "does not show GPU 0 any more" in said.unknown[0]


@pytest.mark.parametrize(("launch", "shown"), [(4, True), (5, False)])
def test_an_error_in_a_launch_that_the_reference_blames_counts_though_the_gpu_was_lost(
    launch: int, shown: bool
) -> None:
    placed = Evidence("CUDA", Seen.SEEN, "error 700", Place((launch, launch)))
    ended = trial(Status.FAULT, stopped=True, evidence=(placed, LOST))
    said = weigh_device(FAULTY, ended, "plain", (wrote(8, 9),))
    assert said.shown == shown
    assert bool(said.unknown) == (not shown)


def test_what_memcheck_named_counts_though_the_gpu_was_lost() -> None:
    ended = trial(Status.FAULT, "memcheck", stopped=True, findings=(wrote(8, 9),), evidence=(LOST,))
    assert weigh_device(FAULTY, ended, "memcheck", (wrote(8, 9),)).shown
    assert weigh_device(FIXED, ended, "memcheck", ()).wrong
