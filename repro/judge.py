"""From evidence to a verdict. Pure, and fail closed: what is missing or unreadable is never clean.

REPRODUCED      every variant that ran came out as expected, a lane that executes kernels showed at
                least one fault, every fix is clean and serves, and no two lanes disagree
NOT REPRODUCED  something decisive came out otherwise
INCONCLUSIVE    neither: evidence is missing or unknown, lanes disagree, or nothing was asked that
                could decide
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .agreement import Elements, difference, places, spans
from .device_judge import DeviceSays, outcomes_of, unwell, weigh_device
from .hypotheses import Weighed
from .lanes.catalog import CATALOG, IN_KERNEL, OUTCOMES
from .plan import Plan, Step, Wanted
from .records import (
    Cause,
    Finding,
    Kind,
    Prediction,
    RunVerdict,
    Scalar,
    Status,
    TrialResult,
)

WHAT = ("kind", "op", "tensor")
Key = tuple[str, str | None, str | None, int | None]  # kind, op, tensor, request

DECIDED = (Status.FAULT, Status.CLEAN)
# Beyond what is predicted, no trial may show these: a kernel breaks, or memory is damaged.
BROKEN = IN_KERNEL | {Kind.HANG}
WRITES = frozenset({Kind.OUT_OF_BOUNDS_WRITE, Kind.FOREIGN_WRITE})


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of a case, the reasons (contradictions first), and what was not looked at.

    agrees: (step number, lane) of kernel-executing trials that name the same accesses as the
    reference.
    """

    verdict: RunVerdict
    cause: Cause
    reasons: tuple[str, ...]
    unobserved: tuple[str, ...]
    agrees: frozenset[tuple[int, str]]


def judge(
    plan: Plan,
    results: Mapping[str, Sequence[TrialResult]],
    cause: Cause,
    weighed: Weighed | None = None,
) -> Judgement:
    """Judge a case. results: by lane, one result for each step of the plan, in its order.

    weighed: its hypotheses against the controls. One of them must give every reported outcome in a
    lane that executes kernels.
    """
    wrong: list[str] = []
    unknown: list[str] = []
    disagree: list[str] = []
    lost: list[str] = []
    unobserved = list(plan.left_out)
    agrees: set[tuple[int, str]] = set()
    shown = False
    for lane in plan.lanes:
        lane_results = results.get(lane, ())
        if len(lane_results) != len(plan.steps):
            unknown.append(f"{lane}: {len(lane_results)} results for {len(plan.steps)} trials")
            continue
        skipped = {r.reason for r in lane_results if r.status is Status.SKIPPED}
        unobserved += [f"lane {lane}: {reason}" for reason in sorted(skipped)]
        for number, (step, result) in enumerate(zip(plan.steps, lane_results, strict=True)):
            if result.status is Status.SKIPPED:
                continue
            where = f"{name(step)} in lane {lane}"
            if why := unwell(result):
                lost.append(f"after {where} the GPU was not well: {why}")
            if result.status not in DECIDED:
                unknown.append(f"{where}: {result.status}: {result.reason or 'no reason given'}")
                continue
            if CATALOG[lane].device:
                said = _on_device(plan, results, number, lane)
                wrong += [f"{where}: {problem}" for problem in said.wrong]
                unknown += [f"{where}: {problem}" for problem in said.unknown]
                unobserved += [f"{where}: {silence}" for silence in said.unobserved]
                shown = shown or said.shown
                if said.agrees:
                    agrees.add((number, lane))
                continue
            if step.wanted.open:
                if result.stopped:
                    unknown.append(f"{where}: stopped before its end")
                continue
            strays = _strays(step.wanted, result, BROKEN)
            if CATALOG[lane].kernels and _difference(plan, results, number, lane) is None:
                strays += _strays(step.wanted, result, WRITES, _reference(plan, results, number))
            wrong += [f"{where}: {stray}" for stray in strays]
            problems = _unmet(step.wanted, result)
            if result.stopped and step.wanted.status is Status.FAULT:
                unknown += [f"{where}: {problem} before it was stopped" for problem in problems]
                continue
            wrong += [f"{where}: {problem}" for problem in problems]
            kernels = CATALOG[lane].kernels
            if kernels and result.status is Status.FAULT and not problems and not strays:
                shown = True
    for number, step in enumerate(plan.steps):
        for lane in plan.lanes:
            found = _difference(plan, results, number, lane)
            if found:
                disagree.append(f"{name(step)}: reference and {lane} disagree: {found}")
            elif found is not None:
                agrees.add((number, lane))
    if weighed is not None:
        shown = shown or _survives_kernels(weighed)
        if not weighed.survive and not weighed.undecided and not unknown:
            wrong.append("no hypothesis that ran gives every reported outcome")
    verdict = RunVerdict.REPRODUCED
    missing: list[str] = []
    if wrong:
        verdict = RunVerdict.NOT_REPRODUCED
    elif disagree or unknown:
        verdict = RunVerdict.INCONCLUSIVE
    elif not shown:
        verdict = RunVerdict.INCONCLUSIVE
        missing.append(_nothing_shown(plan, results))
    reasons = wrong + disagree + unknown + missing
    compared = bool(agrees or disagree)
    if not compared and (ran := _kernel_lanes(plan, results)):
        unobserved.append(f"whether {' and '.join(ran)} and the reference agree")
    if not reasons:
        reasons = [_summary(plan, results)]
        if not compared:
            reasons[0] += "; not compared with the reference"
        if weighed is not None:
            reasons.append(_surviving(weighed))
    return Judgement(verdict, cause, (*reasons, *lost), tuple(unobserved), frozenset(agrees))


def _survives_kernels(weighed: Weighed) -> bool:
    """Whether a survivor was seen by lanes that execute kernels, in all that was reported."""
    return any(
        all(
            cell.lane is not None and CATALOG[cell.lane].kernels
            for cell in weighed.cells
            if cell.hypothesis == name and cell.meets is not None and cell.outcome is not None
        )
        for name in weighed.survive
    )


def as_expected(
    plan: Plan, results: Mapping[str, Sequence[TrialResult]], number: int, lane: str
) -> bool:
    """Whether a trial, by itself, came out as wanted; False where it did not decide."""
    wanted, result = plan.steps[number].wanted, results[lane][number]
    if result.status not in DECIDED:
        return False
    if CATALOG[lane].device:
        said = _on_device(plan, results, number, lane)
        return not said.wrong and not said.unknown
    return wanted.open or not compare(wanted, result)


def _on_device(
    plan: Plan, results: Mapping[str, Sequence[TrialResult]], number: int, lane: str
) -> DeviceSays:
    wanted, result = plan.steps[number].wanted, results[lane][number]
    outcomes = outcomes_of(wanted)
    missed = [] if outcomes is None else _unmet(outcomes, result)
    return weigh_device(wanted, result, lane, _reference(plan, results, number), missed)


def compare(wanted: Wanted, result: TrialResult) -> list[str]:
    """What of a decided trial came out otherwise than wanted, seen by itself; [] if nothing did."""
    return _strays(wanted, result, BROKEN) + _unmet(wanted, result)


def _unmet(wanted: Wanted, result: TrialResult) -> list[str]:
    problems = []
    if wanted.status is Status.CLEAN:
        if result.findings:
            problems.append(f"expected clean, found {describe(result.findings[0])}")
        if wanted.predicted:
            problems.append("the case file says clean, the closed form says fault")
        if wanted.fix:
            problems += _service_problems(result)
        return problems
    for literal in wanted.literal:
        if not any(_matches(literal, finding) for finding in result.findings):
            said = ", ".join(f"{key} {value}" for key, value in literal.items())
            problems.append(f"expected a finding of {said}; {_instead(result, literal)}")
    by_request = {(p.kind, p.op, p.tensor) for p in wanted.predicted if p.request is not None}
    expected = _unions(wanted.predicted, by_request)
    found = _unions(result.findings, by_request)
    open_ended = {_key(p, by_request) for p in wanted.predicted if p.at_least}
    for key, elements in expected.items():
        kind, op, tensor, request = key
        what = f"{kind} by {op} of {tensor}" + ("" if request is None else f", request {request}")
        if key not in found:
            problems.append(f"expected {what}, found none")
        elif not _covered(elements, found[key], key in open_ended):
            problems.append(f"expected {what} at {spans(elements)}, found {spans(found[key])}")
    if wanted.literal and not wanted.predicted:
        problems.append("the case file expects a fault, the closed form says clean")
    return problems


def _strays(
    wanted: Wanted,
    result: TrialResult,
    kinds: Collection[Kind],
    beside: Sequence[Finding] = (),
) -> list[str]:
    """Findings of `kinds` in a trial that must fault which nothing explains: neither the closed
    form nor the case file has one of that kind, op and tensor, and none is `beside` it."""
    if wanted.status is not Status.FAULT:
        return []
    predicted = {(p.kind, p.op, p.tensor) for p in wanted.predicted}
    named = [{key: one[key] for key in WHAT if key in one} for one in wanted.literal]
    known = places(beside, kinds)
    return [
        f"not predicted: {describe(finding)}"
        for finding in result.findings
        if finding.kind in kinds
        and (finding.kind, finding.op, finding.tensor) not in predicted
        and not any(_matches(one, finding) for one in named)
        and known.keys().isdisjoint(places([finding], kinds))
    ]


def _reference(
    plan: Plan, results: Mapping[str, Sequence[TrialResult]], number: int
) -> Sequence[Finding]:
    """What the reference found in a trial; nothing where it did not run or did not decide."""
    found = results.get("reference", ())
    if len(found) != len(plan.steps) or found[number].status not in DECIDED:
        return ()
    return found[number].findings


def name(step: Step) -> str:
    """A step for a reader: the variant, and the parameters that tell its point from others."""
    marks = [f"{key}={step.point[key]}" for key in ("placement",) if key in step.point]
    marks += [f"control {step.control}"] if step.control else []
    return step.variant + (f" ({', '.join(marks)})" if marks else "")


def describe(finding: Finding) -> str:
    """A finding in a line of a reason."""
    where = f" at {finding.elements[0]}..{finding.elements[1]}" if finding.elements else ""
    return f"{finding.kind} by {finding.op} of {finding.tensor}{where}, launch {finding.launch}"


def _difference(
    plan: Plan, results: Mapping[str, Sequence[TrialResult]], number: int, lane: str
) -> str | None:
    """How a lane differs from the reference in what both can locate; None: not comparable."""
    kinds = CATALOG["reference"].locates & CATALOG[lane].locates
    if not CATALOG[lane].kernels or CATALOG[lane].device or not kinds - OUTCOMES:
        return None
    pair = []
    for one in ("reference", lane):
        lane_results = results.get(one, ())
        if len(lane_results) != len(plan.steps) or lane_results[number].status not in DECIDED:
            return None
        if lane_results[number].stopped:
            return None
        pair.append(places(lane_results[number].findings, kinds))
    return difference(*pair)


def _key(one: Finding | Prediction, by_request: Collection[tuple[Kind, str, str]]) -> Key:
    named = (one.kind, one.op, one.tensor) in by_request
    return str(one.kind), one.op, one.tensor, one.request if named else None


def _unions(
    ones: Iterable[Finding | Prediction], by_request: Collection[tuple[Kind, str, str]]
) -> dict[Key, Elements]:
    """Element sets by kind, op, tensor, and by request where a prediction names one."""
    sets: dict[Key, set[int] | None] = {}
    for one in ones:
        key = _key(one, by_request)
        known = sets.setdefault(key, set())
        if one.elements is None:
            sets[key] = None
        elif known is not None:
            known.update(range(one.elements[0], one.elements[1] + 1))
    return {k: None if v is None else frozenset(v) for k, v in sets.items()}


def _covered(wanted: Elements, found: Elements, open_ended: bool) -> bool:
    if wanted is None:
        return True
    if found is None or not found:
        return False
    if open_ended:
        return min(found) == min(wanted) and wanted <= found
    return found == wanted


def _matches(literal: Mapping[str, Scalar], finding: Finding) -> bool:
    seen: dict[str, Scalar | None] = {
        "kind": finding.kind,
        "op": finding.op,
        "tensor": finding.tensor,
        "first_element": finding.elements[0] if finding.elements else None,
        "request": finding.request,
        "step": finding.step,
    }
    return all(seen[key] == value for key, value in literal.items())


def _instead(result: TrialResult, literal: Mapping[str, Scalar]) -> str:
    same = [f for f in result.findings if f.kind == literal["kind"]] or list(result.findings)
    return f"found {describe(same[0])}" if same else "found none"


def _service_problems(result: TrialResult) -> list[str]:
    service = result.service
    if service is None:
        return ["the fix is clean, but whether it serves was not seen"]
    problems = []
    if not service.finished:
        problems.append("the fix does not serve: a request did not reach its length")
    if not service.tokens_right:
        problems.append("the fix does not serve: tokens differ from a run without speculation")
    if not service.speculated:
        problems.append("the fix does not serve: no speculation where it fits")
    return problems


def _kernel_lanes(plan: Plan, results: Mapping[str, Sequence[TrialResult]]) -> list[str]:
    """The lanes that execute kernels and decided at least one trial."""
    return [
        lane
        for lane in plan.lanes
        if CATALOG[lane].kernels and any(r.status in DECIDED for r in results.get(lane, ()))
    ]


def _nothing_shown(plan: Plan, results: Mapping[str, Sequence[TrialResult]]) -> str:
    if not _kernel_lanes(plan, results):
        return "no lane that executes kernels ran"
    if all(step.wanted.status is Status.CLEAN for step in plan.steps):
        return "nothing was asked for that should show a fault"
    return "no lane that executes kernels showed the fault"


def _surviving(weighed: Weighed) -> str:
    total = len(weighed.survive) + len(weighed.out) + len(weighed.undecided)
    return (
        f"{len(weighed.survive)} of {total} hypotheses give every reported outcome: "
        f"{', '.join(weighed.survive)}"
    )


def _summary(plan: Plan, results: Mapping[str, Sequence[TrialResult]]) -> str:
    faults = sum(step.wanted.status is Status.FAULT for step in plan.steps)
    clean = sum(step.wanted.status is Status.CLEAN for step in plan.steps)
    lanes = [lane for lane in plan.lanes if any(r.status in DECIDED for r in results.get(lane, ()))]
    said = [f"{faults} variant{'s'[: faults != 1]} at a point showed the fault as expected"]
    if not faults:  # of a case with hypotheses
        said = []
    return f"{' and '.join([*said, f'{clean} came out clean'])}, in {' and '.join(lanes)}"
