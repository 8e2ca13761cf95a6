"""Hypotheses against controls: the shipped case, run in the reference lane, and made-up reports."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from specrepro.repro.case import Control, Facts, Hypothesis, LoadedCase, load_cases, override
from specrepro.repro.errors import UsageError
from specrepro.repro.hypotheses import (
    ILLEGAL,
    RIGHT,
    WRONG,
    TrialOutcome,
    Weighed,
    contradiction,
    entropy,
    proposals,
    weigh,
    weighed,
)
from specrepro.repro.hypotheses_record import hypotheses_record
from specrepro.repro.judge import judge
from specrepro.repro.lanes.child import play
from specrepro.repro.lanes.process import Ending, read_results
from specrepro.repro.plan import Plan, plan
from specrepro.repro.records import (
    Cause,
    RunVerdict,
    Service,
    Status,
    TrialResult,
)
from specrepro.repro.report.matrix_page import matrix_section
from specrepro.repro.report.run_page import panel
from specrepro.repro.run_record import case_record

GOOD = Service(finished=True, tokens_right=True, drafted=0, accepted=0, speculated=True)
Results = Mapping[str, Sequence[TrialResult]]


@dataclass(frozen=True)
class Ran:
    """The shipped case and every trial of it in the reference lane."""

    loaded: LoadedCase
    plan: Plan
    results: Results

    @property
    def weighed(self) -> Weighed:
        found = weigh(self.loaded.case, self.plan, self.results)
        assert found is not None
        return found

    def outcomes(self) -> dict[tuple[str, str], TrialOutcome]:
        return {
            (cell.hypothesis, cell.control): cell.outcome
            for cell in self.weighed.cells
            if cell.outcome is not None
        }


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    [loaded] = load_cases(["gdn-pipeline-state"])
    planned = plan(loaded.case, loaded.case, lanes=("reference",))
    job = {
        "lane": "reference",
        "scenario": loaded.case.scenario,
        "owners": dict(loaded.case.owners),
        "stop_at_first": False,
    }
    lines = [
        {"trial": n, **play(job, {"point": s.point, "settings": s.settings})}
        for n, s in enumerate(planned.steps)
    ]
    lines.append({"complete": len(planned.steps)})
    directory: Path = tmp_path_factory.mktemp("reference")
    (directory / "result.ndjson").write_text("".join(json.dumps(x) + "\n" for x in lines))
    results = read_results(directory, planned.trials("reference"), Ending("", False, 0.0))
    return Ran(loaded, planned, {"reference": results})


# --- the shipped case --------------------------------------------------------------------------

# What was expected by hand before anything ran. i1: illegal access, stage 1 first.
BY_HAND = {
    "h1": ("i1", "right", "i1", "wrong", "wrong"),
    "h2": ("right", "right", "right", "right", "right"),
    "h3": ("right", "right", "right", "right", "right"),
    "h4": ("right", "right", "right", "right", "right"),
    "h5": ("right", "right", "right", "right", "right"),
    "h6": ("i1", "i1", "right", "wrong", "right"),
    "h7": ("wrong", "wrong", "right", "wrong", "right"),
    "h8": ("i1", "i1", "right", "wrong", "right"),
    "h9": ("wrong", "wrong", "wrong", "wrong", "right"),
    "h10": ("i1", "i1", "i1", "right", "right"),
}
DIFFERENT = {
    # An attention layer that is given a state group's table reads next to the table and the cache,
    # which no device notices; the expectation took every access out of bounds for illegal.
    ("h1", "a"): "wrong",
    ("h1", "c"): "wrong",
    # The negative block numbers of huge blocks are run with tiny ones, so they stay near it;
    # the expectation had the huge ones in mind, where it is illegal, but on stage 0 first.
    ("h10", "a"): "wrong",
    ("h10", "b"): "wrong",
    ("h10", "c"): "wrong",
}


def short(found: TrialOutcome) -> str:
    words = {ILLEGAL: f"i{found.stage}", WRONG: "wrong", RIGHT: "right"}
    return words[found.kind]


def test_running_gives_the_expectation_made_by_hand_but_for_five_cells(ran: Ran) -> None:
    seen = ran.outcomes()
    different = {
        (name, control): short(seen[name, control])
        for name, row in BY_HAND.items()
        for control, expected in zip("abcde", row, strict=True)
        if short(seen[name, control]) != expected
    }
    assert different == DIFFERENT


def test_two_hypotheses_survive_the_report_and_each_other_one_is_out_by_name(ran: Ran) -> None:
    assert ran.weighed.survive == ("h6", "h8")
    assert ran.weighed.out == {
        "h1": ("a", "b", "c", "e"),
        "h2": ("a", "b", "d"),
        "h3": ("a", "b", "d", "f"),
        "h4": ("a", "b", "d", "f"),
        "h5": ("a", "b", "d", "f"),
        "h7": ("a", "b"),
        "h9": ("a", "b", "c"),
        "h10": ("a", "b", "c", "d"),
        "a3": ("a", "b", "d"),
    }
    assert ran.weighed.undecided == ()


def test_the_next_experiment_separates_the_survivors_and_the_cheaper_comes_first(
    ran: Ran,
) -> None:
    first, second = ran.weighed.next
    assert first.control == "eager"
    assert first.outcomes == {"h6": TrialOutcome(ILLEGAL, 1), "h8": TrialOutcome(RIGHT)}
    assert second.control == "one_chunk"
    assert second.outcomes == {"h6": TrialOutcome(RIGHT), "h8": TrialOutcome(ILLEGAL, 1)}
    assert first.bits == second.bits == 1


@pytest.mark.parametrize("truth", [f"h{n}" for n in range(1, 11)] + ["a3"])
def test_a_hypothesis_planted_as_the_truth_stays_and_all_that_differ_go(
    ran: Ran, truth: str
) -> None:
    seen = ran.outcomes()
    controls = []
    for control in ran.loaded.case.controls:
        if control.sets is None:
            continue
        told = seen[truth, control.id]
        reported = {"outcome": told.kind, "stage": told.stage}
        if control.reported is None:
            continue
        controls.append(Control(id=control.id, title="-", sets={}, reported=reported))
    found = weighed(
        ran.loaded.case.hypotheses, controls, {k: (v, "reference") for k, v in seen.items()}
    )

    def row(name: str) -> list[TrialOutcome]:
        return [seen[name, control.id] for control in controls]

    names = [h.variant for h in ran.loaded.case.hypotheses]
    assert truth in found.survive
    assert set(found.survive) == {name for name in names if row(name) == row(truth)}
    assert set(found.out) == set(names) - set(found.survive)


def test_a_planted_truth_is_told_from_the_other_survivor_by_the_first_proposal(
    ran: Ran,
) -> None:
    seen = ran.outcomes()
    assert ran.weighed.next[0].control == "eager"
    assert seen["h6", "eager"] != seen["h8", "eager"]


# --- the pure parts ----------------------------------------------------------------------------


def hypothesis(**values: Any) -> Hypothesis:
    return Hypothesis(variant="h", title="-", **values)


FACTS = Facts(fails_in="0.32.0", cache_hit=False, runners=("v1", "v2"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"fixed_in": "0.32.0"}, "fixed in 0.32.0, and 0.32.0 fails"),
        ({"fixed_in": "0.9.2"}, "fixed in 0.9.2, and 0.32.0 fails"),
        ({"fixed_in": "0.33.0"}, ""),
        ({"needs_hit": True}, "needs a cache hit, and there was none"),
        ({"runner": "v2"}, "runner v1 fails as well, which has it not"),
        ({}, ""),
    ],
)
def test_facts_of_the_report_speak_against_a_hypothesis(values: dict[str, Any], said: str) -> None:
    assert contradiction(hypothesis(**values), FACTS) == said


@pytest.mark.parametrize(
    ("counts", "bits"), [([2], 0), ([1, 1], 1), ([2, 2], 1), ([1, 1, 1, 1], 2), ([], 0)]
)
def test_bits_are_those_of_equally_likely_members(counts: list[int], bits: float) -> None:
    assert entropy(counts) == bits


def untried(name: str, minutes: int) -> Control:
    return Control(id=name, title="-", sets={}, command="-", minutes=minutes)


def test_proposals_go_by_bits_then_cost_and_leave_out_what_tells_nothing_or_was_not_run() -> None:
    right, wrong = TrialOutcome(RIGHT), TrialOutcome(WRONG)
    illegal = TrialOutcome(ILLEGAL, 1)
    outcomes = {
        "same": (right, right, right),
        "dear": (right, wrong, illegal),
        "two": (right, wrong, wrong),
        "cheap": (right, illegal, wrong),
    }
    names = ("x", "y", "z")
    seen = {
        (name, control): (told, "reference")
        for control, row in outcomes.items()
        for name, told in zip(names, row, strict=True)
    }
    seen["x", "partly"] = (right, "reference")
    controls = [
        untried(n, m)
        for n, m in (("same", 1), ("two", 1), ("dear", 30), ("cheap", 5), ("partly", 1))
    ]
    assert [p.control for p in proposals(controls, names, seen)] == ["cheap", "dear", "two"]


def test_a_reported_control_that_was_not_observed_leaves_a_hypothesis_undecided() -> None:
    control = Control(id="a", title="-", sets={}, reported={"outcome": "right", "stage": None})
    found = weighed([hypothesis()], [control], {})
    assert (found.survive, found.undecided, found.out) == ((), ("h",), {})


# --- plan, verdict, page -----------------------------------------------------------------------


def test_every_hypothesis_is_planned_under_every_control_that_has_a_point(ran: Ran) -> None:
    asked = {(s.variant, s.control) for s in ran.plan.steps if s.wanted.open}
    case = ran.loaded.case
    points = [c.id for c in case.controls if c.sets is not None]
    assert len(points) == 13
    assert asked == {(h.variant, c) for h in case.hypotheses for c in points}
    assert [s.variant for s in ran.plan.steps if not s.wanted.open] == ["correct"]


def test_what_nobody_has_tried_is_left_to_the_first_lane_that_was_chosen(ran: Ran) -> None:
    case = ran.loaded.case
    tried = {c.id for c in case.controls if c.reported}
    for lanes, first in ((("reference", "emulator"), "reference"), (("emulator",), "emulator")):
        for step in plan(case, case, lanes=lanes).steps:
            if step.control is None or step.control in tried:
                assert step.left_to("emulator") == ""
            else:
                assert (step.left_to("emulator") == "") is (first == "emulator")


def test_a_value_set_by_hand_that_a_control_contradicts_is_refused(ran: Ran) -> None:
    small = override(ran.loaded.case, {"layers": "4", "partition": "single"})
    with pytest.raises(UsageError, match="control a of case gdn-pipeline-state: partition"):
        plan(small, ran.loaded.case)


def with_kernels(ran: Ran, results: Sequence[TrialResult] | None = None) -> tuple[Plan, Results]:
    """The same results as if an emulator had had them."""
    planned = replace(ran.plan, lanes=("emulator",))
    return planned, {"emulator": ran.results["reference"] if results is None else results}


def verdict(ran: Ran, planned: Plan, results: Results) -> Any:
    return judge(planned, results, Cause.UNKNOWN, weigh(ran.loaded.case, planned, results))


def test_a_survivor_that_kernels_showed_reproduces_the_case(ran: Ran) -> None:
    judged = verdict(ran, *with_kernels(ran))
    assert judged.verdict is RunVerdict.REPRODUCED
    assert "2 of 11 hypotheses give every reported outcome: h6, h8" in judged.reasons[-1]


def test_the_reference_alone_reproduces_nothing(ran: Ran) -> None:
    assert verdict(ran, ran.plan, ran.results).verdict is RunVerdict.INCONCLUSIVE


def test_without_a_survivor_the_case_is_not_reproduced(ran: Ran) -> None:
    planned, results = with_kernels(ran)
    kept = [n for n, s in enumerate(planned.steps) if s.variant not in ("h6", "h8")]
    fewer = replace(planned, steps=tuple(planned.steps[n] for n in kept))
    judged = verdict(ran, fewer, {"emulator": [results["emulator"][n] for n in kept]})
    assert judged.verdict is RunVerdict.NOT_REPRODUCED
    assert judged.reasons[0] == "no hypothesis that ran gives every reported outcome"


@pytest.mark.parametrize("change", [{"status": Status.UNKNOWN}, {"stopped": True}])
def test_an_open_trial_without_an_answer_is_inconclusive(ran: Ran, change: dict[str, Any]) -> None:
    planned, results = with_kernels(ran)
    at = next(n for n, s in enumerate(planned.steps) if (s.variant, s.control) == ("h6", "a"))
    changed = list(results["emulator"])
    changed[at] = replace(changed[at], **change)
    assert verdict(ran, planned, {"emulator": changed}).verdict is RunVerdict.INCONCLUSIVE


def test_a_right_pipeline_that_does_not_serve_is_not_reproduced(ran: Ran) -> None:
    planned, results = with_kernels(ran)
    changed = list(results["emulator"])
    changed[0] = replace(changed[0], service=replace(GOOD, tokens_right=False))
    assert verdict(ran, planned, {"emulator": changed}).verdict is RunVerdict.NOT_REPRODUCED


def test_the_record_says_the_matrix_and_the_page_what_it_does_not_prove(ran: Ran) -> None:
    record = hypotheses_record(ran.loaded.case, ran.weighed)
    assert json.loads(json.dumps(record)) == record
    assert record["survive"] == ["h6", "h8"]
    assert record["next"][0]["command"].endswith("--enforce-eager")
    assert len(record["matrix"]) == 11
    text = " ".join(page(ran, 80).split())
    assert "Consistency is not proof: the cause of the report stays unknown." in text
    assert "Two levers were pulled at once in c (eager and launch blocking)" in text
    assert "survive h6, h8" in text
    said = "h6 illegal@1, h8 right (1 bit, in lane reference only)"
    assert f"1 eager without launch blocking: {said}" in text


def page(ran: Ran, width: int) -> str:
    record = hypotheses_record(ran.loaded.case, ran.weighed)
    console = Console(width=width, no_color=True)
    with console.capture() as said:
        console.print(matrix_section({"hypotheses": record, "cause": "unknown"}))
    return said.get()


@pytest.mark.parametrize("width", [70, 80, 200])
def test_a_matrix_that_fits_is_a_table_with_a_row_a_hypothesis(ran: Ran, width: int) -> None:
    rows = {line.split()[0]: line.split() for line in page(ran, width).splitlines()[1:13]}
    assert list(rows) == ["report", *(f"h{n}" for n in range(1, 11)), "a3"]
    assert " ".join(rows["h6"]) == "h6 ✓ illegal@1 ✓ illegal@1 ✓ right ✓ wrong ✓ right ✓"


@pytest.mark.parametrize("width", [36, 40, 60])
def test_a_narrow_page_says_every_cell_of_the_matrix_by_its_control(ran: Ran, width: int) -> None:
    said = page(ran, width)
    assert "…" not in said
    assert max(len(line.rstrip()) for line in said.splitlines()) <= width
    matrix = " ".join(said.split("✓ as reported")[0].split())
    assert "report a illegal@1 b illegal@1 c right d wrong e right f facts h1" in matrix
    for name in ("h6", "h8"):
        row = f"{name} a ✓ illegal@1 b ✓ illegal@1 c ✓ right d ✓ wrong e ✓ right f ✓ h"
        assert row in matrix


def test_a_case_without_hypotheses_has_no_matrix() -> None:
    assert matrix_section({"hypotheses": None}) is None
    [tail] = load_cases(["mtp-tail-overflow"])
    assert weigh(tail.case, plan(tail.case, tail.case), {}) is None


def test_hypotheses_alone_have_no_grid_of_lanes_but_the_lanes_that_did_not_run(ran: Ran) -> None:
    case = ran.loaded.case
    kept = [n for n, s in enumerate(ran.plan.steps) if s.variant == "h6"]
    steps = tuple(ran.plan.steps[n] for n in kept)
    planned = replace(ran.plan, lanes=("reference", "plain"), steps=steps)
    skipped = [
        TrialResult(trial, Status.SKIPPED, reason="no device here")
        for trial in planned.trials("plain")
    ]
    results = {"reference": [ran.results["reference"][n] for n in kept], "plain": skipped}
    weighing = weigh(case, planned, results)
    judged = judge(planned, results, Cause.UNKNOWN, weighing)
    record = case_record(ran.loaded, case, planned, results, judged, weighing)
    console = Console(width=80, no_color=True)
    with console.capture() as said:
        console.print(panel(record, "-"))
    lines = [line.strip() for line in said.get().splitlines()]
    assert "– not run: plain: no device here" in lines
    assert not [line for line in lines if line.endswith("Xid")]
