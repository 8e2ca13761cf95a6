"""Each way in which evidence can fail changes the verdict."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from specrepro.repro.judge import Judgement, compare, judge
from specrepro.repro.lanes.catalog import CATALOG
from specrepro.repro.plan import Plan, plan
from specrepro.repro.records import (
    Cause,
    Finding,
    Kind,
    RunVerdict,
    Service,
    Status,
    TrialResult,
)


def verdict(ran: Any, results: Any = None, planned: Plan | None = None) -> Judgement:
    return judge(planned or ran.plan, results or ran.results, Cause.CONTESTED)


def number(ran: Any, variant: str, placement: str = "unmapped") -> int:
    return next(
        n
        for n, step in enumerate(ran.plan.steps)
        if step.variant == variant and step.point["placement"] == placement
    )


def with_result(ran: Any, lane: str, at: int, **changes: Any) -> dict[str, Sequence[TrialResult]]:
    results = {name: list(found) for name, found in ran.results.items()}
    results[lane][at] = replace(results[lane][at], **changes)
    return dict(results)


def test_all_as_the_case_says_is_reproduced_and_the_lanes_agree(ran_tail: Any) -> None:
    judged = verdict(ran_tail)
    assert judged.verdict is RunVerdict.REPRODUCED
    assert judged.agrees == {(n, "emulator") for n in range(len(ran_tail.plan.steps))}


def test_the_faces_are_planned_and_need_their_own_findings(ran_tail: Any) -> None:
    at = number(ran_tail, "faulty", "neighbour")
    kept = [
        f for f in ran_tail.results["emulator"][at].findings if f.kind is not Kind.FOREIGN_WRITE
    ]
    judged = verdict(ran_tail, with_result(ran_tail, "emulator", at, findings=tuple(kept)))
    assert judged.verdict is RunVerdict.NOT_REPRODUCED
    assert "foreign_write" in judged.reasons[0]


def test_a_finding_in_a_fix_is_not_reproduced(ran_tail: Any) -> None:
    stray = Finding(Kind.OUT_OF_BOUNDS_READ, 3, "rope", "rope_table", (0, 0), 1)
    at = number(ran_tail, "fixed")
    for lane in ("reference", "emulator"):
        judged = verdict(
            ran_tail,
            with_result(ran_tail, lane, at, status=Status.FAULT, findings=(stray,)),
        )
        assert judged.verdict is RunVerdict.NOT_REPRODUCED
        assert f"fixed (placement=unmapped) in lane {lane}: expected clean" in judged.reasons[0]


@pytest.mark.parametrize(
    ("service", "said"),
    [
        (Service(False, True, 3, 3, True), "did not reach its length"),
        (Service(True, False, 3, 3, True), "tokens differ"),
        (Service(True, True, 0, 0, False), "no speculation where it fits"),
        (None, "whether it serves was not seen"),
    ],
)
def test_a_fix_that_is_clean_and_does_not_serve_is_not_reproduced(
    ran_tail: Any, service: Service | None, said: str
) -> None:
    changed = with_result(ran_tail, "emulator", number(ran_tail, "fixed"), service=service)
    judged = verdict(ran_tail, changed)
    assert judged.verdict is RunVerdict.NOT_REPRODUCED
    assert said in judged.reasons[0]


def test_the_expected_finding_missing_is_not_reproduced(ran_tail: Any) -> None:
    at = number(ran_tail, "faulty")
    kept = [f for f in ran_tail.results["emulator"][at].findings if f.tensor != "key_cache"]
    judged = verdict(ran_tail, with_result(ran_tail, "emulator", at, findings=tuple(kept)))
    assert judged.verdict is RunVerdict.NOT_REPRODUCED


def test_an_expected_finding_one_element_off_is_not_reproduced(ran_tail: Any) -> None:
    at = number(ran_tail, "faulty")
    moved = tuple(
        replace(f, elements=(f.elements[0] + 1, f.elements[1] + 1)) if f.op == "kv_write" else f
        for f in ran_tail.results["emulator"][at].findings
    )
    judged = verdict(ran_tail, with_result(ran_tail, "emulator", at, findings=moved))
    assert judged.verdict is RunVerdict.NOT_REPRODUCED


def test_an_extra_element_of_the_expected_kind_is_not_reproduced(ran_tail: Any) -> None:
    at = number(ran_tail, "faulty")
    found = ran_tail.results["emulator"][at].findings
    wide = tuple(
        replace(f, elements=(f.elements[0], f.elements[1] + 1)) if f.op == "kv_write" else f
        for f in found
    )
    judged = verdict(ran_tail, with_result(ran_tail, "emulator", at, findings=wide))
    assert judged.verdict is RunVerdict.NOT_REPRODUCED


@pytest.mark.parametrize("lane", ["reference", "emulator"])
def test_a_finding_that_one_lane_lacks_makes_the_lanes_disagree(ran_tail: Any, lane: str) -> None:
    at = number(ran_tail, "faulty")
    kept = tuple(f for f in ran_tail.results[lane][at].findings if f.op != "paged_attention")
    judged = verdict(ran_tail, with_result(ran_tail, lane, at, findings=kept))
    assert judged.verdict is RunVerdict.INCONCLUSIVE
    assert "reference and emulator disagree: out_of_bounds_read" in judged.reasons[0]
    assert (at, "emulator") not in judged.agrees


@pytest.mark.parametrize("field", ["launch", "step"])
def test_the_same_access_at_another_moment_is_a_disagreement(ran_tail: Any, field: str) -> None:
    at = number(ran_tail, "faulty")
    moved = tuple(
        replace(f, **{field: 7}) if f.op == "paged_attention" else f
        for f in ran_tail.results["emulator"][at].findings
    )
    judged = verdict(ran_tail, with_result(ran_tail, "emulator", at, findings=moved))
    assert judged.verdict is RunVerdict.INCONCLUSIVE


def test_other_threads_for_the_same_elements_are_no_disagreement(ran_tail: Any) -> None:
    at = number(ran_tail, "faulty")
    moved = tuple(
        replace(f, threads=1, thread=(9, 0, 0), width=16)
        for f in ran_tail.results["emulator"][at].findings
    )
    judged = verdict(ran_tail, with_result(ran_tail, "emulator", at, findings=moved))
    assert judged.verdict is RunVerdict.REPRODUCED


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.ERROR, Status.TIMEOUT])
@pytest.mark.parametrize("lane", ["reference", "emulator"])
def test_a_trial_without_an_answer_is_inconclusive(
    ran_tail: Any, lane: str, status: Status
) -> None:
    changed = with_result(ran_tail, lane, 1, status=status, findings=(), reason="cut")
    judged = verdict(ran_tail, changed)
    assert judged.verdict is RunVerdict.INCONCLUSIVE
    assert judged.reasons[0].endswith(f"{status}: cut")


def test_a_trial_stopped_at_its_first_finding_decides_nothing_about_the_rest(
    ran_tail: Any,
) -> None:
    at = number(ran_tail, "faulty")
    first = ran_tail.results["emulator"][at].findings[:1]
    judged = verdict(ran_tail, with_result(ran_tail, "emulator", at, findings=first, stopped=True))
    assert judged.verdict is RunVerdict.INCONCLUSIVE
    assert judged.reasons[0].endswith("of value_cache, found none before it was stopped")


def test_a_fix_that_was_stopped_at_a_finding_is_not_reproduced(ran_tail: Any) -> None:
    stray = (Finding(Kind.TRAP, 3, "rope", None),)
    changed = with_result(
        ran_tail,
        "emulator",
        number(ran_tail, "fixed"),
        status=Status.FAULT,
        findings=stray,
        stopped=True,
    )
    assert verdict(ran_tail, changed).verdict is RunVerdict.NOT_REPRODUCED


NOT_PREDICTED = (
    Finding(Kind.TRAP, 3, "rope", None),
    Finding(Kind.SHARED_RACE, 3, "paged_attention", "shared", (0, 3)),
    Finding(Kind.UNINITIALISED_READ, 3, "kv_write", "key_cache", (1024, 1039)),
    Finding(Kind.HANG, 3, "kv_write", None),
)


@pytest.mark.parametrize("stray", NOT_PREDICTED, ids=lambda stray: str(stray.kind))
@pytest.mark.parametrize("stopped", [False, True])
def test_a_fault_that_only_kernels_show_and_nobody_predicted_is_not_reproduced(
    ran_tail: Any, stray: Finding, stopped: bool
) -> None:
    at = number(ran_tail, "faulty")
    found = (*ran_tail.results["emulator"][at].findings, stray)
    changed = with_result(ran_tail, "emulator", at, findings=found, stopped=stopped)
    judged = verdict(ran_tail, changed)
    assert judged.verdict is RunVerdict.NOT_REPRODUCED
    assert f"lane emulator: not predicted: {stray.kind} by {stray.op}" in judged.reasons[0]
    assert compare(ran_tail.plan.steps[at].wanted, changed["emulator"][at])


def test_a_trap_that_the_case_file_names_is_explained(ran_tail: Any) -> None:
    at = number(ran_tail, "faulty")
    steps = list(ran_tail.plan.steps)
    named = (*steps[at].wanted.literal, {"kind": "trap", "op": "rope"})
    steps[at] = replace(steps[at], wanted=replace(steps[at].wanted, literal=named))
    found = ran_tail.results["emulator"][at].findings
    for op, problems in (("rope", 0), ("kv_write", 2)):
        result = replace(
            ran_tail.results["emulator"][at], findings=(*found, Finding(Kind.TRAP, 3, op))
        )
        assert len(compare(steps[at].wanted, result)) == problems


STRAY_WRITE = Finding(Kind.OUT_OF_BOUNDS_WRITE, 3, "rope", "query", (64, 64))


def test_a_write_nobody_predicted_is_held_against_a_lane_without_the_reference(
    ran_tail: Any,
) -> None:
    planned, results = select(ran_tail, lanes=("emulator",))
    at = number(ran_tail, "faulty")
    result = results["emulator"][at]
    results["emulator"][at] = replace(result, findings=(*result.findings, STRAY_WRITE))
    judged = verdict(ran_tail, results, planned)
    assert judged.verdict is RunVerdict.NOT_REPRODUCED
    assert "not predicted: out_of_bounds_write by rope of query at 64..64" in judged.reasons[0]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_write_nobody_predicted_passes_only_where_the_reference_has_it(
    ran_tail: Any, elsewhere: bool
) -> None:
    at = number(ran_tail, "faulty")
    results = dict(ran_tail.results)
    for lane in ("reference", "emulator"):
        moved = replace(STRAY_WRITE, launch=4 if elsewhere and lane == "emulator" else 3)
        found = (*ran_tail.results[lane][at].findings, moved)
        results[lane] = with_result(ran_tail, lane, at, findings=found)[lane]
    wanted = RunVerdict.INCONCLUSIVE if elsewhere else RunVerdict.REPRODUCED
    assert verdict(ran_tail, results).verdict is wanted


def test_a_stopped_trial_may_end_at_a_write_that_the_reference_has(ran_tail: Any) -> None:
    at = number(ran_tail, "faulty")
    found = (*ran_tail.results["reference"][at].findings, STRAY_WRITE)
    results = with_result(ran_tail, "reference", at, findings=found)
    stopped = with_result(ran_tail, "emulator", at, findings=(STRAY_WRITE,), stopped=True)
    results["emulator"] = stopped["emulator"]
    assert verdict(ran_tail, results).verdict is RunVerdict.INCONCLUSIVE
    assert verdict(ran_tail, stopped).verdict is RunVerdict.NOT_REPRODUCED


def test_a_kernel_lane_alone_is_reproduced_and_said_to_be_compared_with_nothing(
    ran_tail: Any,
) -> None:
    planned, results = select(ran_tail, lanes=("emulator",))
    judged = verdict(ran_tail, results, planned)
    assert judged.verdict is RunVerdict.REPRODUCED
    assert judged.reasons[0].endswith("in emulator; not compared with the reference")
    assert "whether emulator and the reference agree" in judged.unobserved
    stray = [replace(r, findings=(STRAY_WRITE,)) for r in ran_tail.results["reference"]]
    differ = {**ran_tail.results, "reference": stray}
    assert not any("the reference agree" in gap for gap in verdict(ran_tail, differ).unobserved)
    both = verdict(ran_tail)
    assert "not compared" not in both.reasons[0]
    assert not any("reference" in gap for gap in both.unobserved)


def test_missing_results_are_inconclusive(ran_tail: Any) -> None:
    results = {**ran_tail.results, "emulator": ran_tail.results["emulator"][:-1]}
    assert verdict(ran_tail, results).verdict is RunVerdict.INCONCLUSIVE
    assert verdict(ran_tail, {"reference": ran_tail.results["reference"]}).verdict is (
        RunVerdict.INCONCLUSIVE
    )


def test_a_contradiction_outweighs_what_is_unknown(ran_tail: Any) -> None:
    results = with_result(ran_tail, "reference", 0, status=Status.UNKNOWN)
    stray = (Finding(Kind.TRAP, 3, "rope", None),)
    results["emulator"] = list(results["emulator"])
    results["emulator"][1] = replace(results["emulator"][1], status=Status.FAULT, findings=stray)
    assert verdict(ran_tail, results).verdict is RunVerdict.NOT_REPRODUCED


def test_lanes_that_were_skipped_are_unobserved_and_spoil_nothing(ran_tail: Any) -> None:
    planned = plan(ran_tail.loaded.case, ran_tail.loaded.case)
    results = dict(ran_tail.results)
    for lane in (name for name in planned.lanes if CATALOG[name].device):
        results[lane] = [
            TrialResult(trial, Status.SKIPPED, reason="no CUDA device")
            for trial in planned.trials(lane)
        ]
    judged = verdict(ran_tail, results, planned)
    assert judged.verdict is RunVerdict.REPRODUCED
    assert "lane memcheck: no CUDA device" in judged.unobserved


def select(ran: Any, **asked: Any) -> tuple[Plan, dict[str, list[TrialResult]]]:
    planned = plan(ran.loaded.case, ran.loaded.case, **asked)
    kept = {
        lane: [
            ran.results[lane][
                next(
                    n
                    for n, other in enumerate(ran.plan.steps)
                    if (other.variant, other.point) == (step.variant, step.point)
                )
            ]
            for step in planned.steps
        ]
        for lane in planned.lanes
    }
    return planned, kept


def test_the_reference_alone_decides_nothing(ran_tail: Any) -> None:
    planned, results = select(ran_tail, lanes=("reference",))
    judged = verdict(ran_tail, results, planned)
    assert judged.verdict is RunVerdict.INCONCLUSIVE
    assert judged.reasons == ("no lane that executes kernels ran",)


def test_fixes_alone_decide_nothing(ran_tail: Any) -> None:
    planned, results = select(ran_tail, lanes=("reference", "emulator"), variants=("fixed",))
    assert verdict(ran_tail, results, planned).verdict is RunVerdict.INCONCLUSIVE


def test_variants_that_were_not_asked_for_are_named_and_spoil_nothing(ran_tail: Any) -> None:
    planned, results = select(ran_tail, lanes=("reference", "emulator"), variants=("faulty",))
    judged = verdict(ran_tail, results, planned)
    assert judged.verdict is RunVerdict.REPRODUCED
    assert "variant fixed" in judged.unobserved


def test_file_and_closed_form_must_say_the_same(ran_tail: Any) -> None:
    steps = list(ran_tail.plan.steps)
    at = number(ran_tail, "faulty")
    quiet = replace(steps[at].wanted, literal=(), literal_clean=True)
    steps[at] = replace(steps[at], wanted=quiet)
    judged = verdict(ran_tail, None, replace(ran_tail.plan, steps=tuple(steps)))
    assert judged.verdict is RunVerdict.NOT_REPRODUCED
    assert judged.reasons[1].endswith("the case file says clean, the closed form says fault")
