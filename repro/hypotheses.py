"""Hypotheses against the experiments of a report. Pure.

An outcome is an illegal access with the stage that faulted first, wrong output, or the right one.
A device maps memory in granules and notices only an access that leaves them, so an access a little
past the end of a tensor does not end a run: its tokens decide.
A hypothesis is *out* by every reported experiment that came out otherwise than it does; the others
survive. Consistency is not proof: what survives is compatible with the report, and no more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .lanes.catalog import CATALOG
from .plan import Plan
from .records import Finding, Kind, Status, TrialResult

if TYPE_CHECKING:
    from .case import Case, Control, Facts, Hypothesis

ILLEGAL, WRONG, RIGHT = "illegal_access", "wrong_output", "right"
MAPPING_GRANULE = 2 << 20  # bytes; granularity of device mappings, and least size of a segment
OUT_OF_BOUNDS = (Kind.OUT_OF_BOUNDS_READ, Kind.OUT_OF_BOUNDS_WRITE)


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What a user of the engine would report of a trial. stage: that faulted first, from 0."""

    kind: str
    stage: int | None = None

    def meets(self, reported: TrialOutcome) -> bool:
        """Whether this is what was reported; a report that names no stage leaves it open."""
        return self.kind == reported.kind and reported.stage in (None, self.stage)


@dataclass(frozen=True, slots=True)
class Cell:
    """A hypothesis under a control. outcome None: not observed. meets None: nothing to compare.

    lane: where it was observed. contradicts: what a fact of the report says against it.
    """

    hypothesis: str
    control: str
    outcome: TrialOutcome | None
    meets: bool | None
    lane: str | None = None
    contradicts: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An experiment nobody reported, and what it would tell: bits, with survivors equally likely.

    outcomes: what each survivor does under it.
    """

    control: str
    bits: float
    outcomes: Mapping[str, TrialOutcome]


@dataclass(frozen=True, slots=True)
class Weighed:
    """Hypotheses against controls. out: hypothesis → the controls that speak against it.

    undecided: hypotheses with a reported control that was not observed.
    """

    cells: tuple[Cell, ...]
    out: Mapping[str, tuple[str, ...]]
    survive: tuple[str, ...]
    undecided: tuple[str, ...]
    next: tuple[Proposal, ...]


def outcome(result: TrialResult) -> TrialOutcome | None:
    """The outcome of a trial; None where the trial was not decided or not seen to its end.

    The stage is that of the first access, in order of launches, that ends a device, by the launches
    that `metrics["launch_stages"]` gives each stage ([first, last, stage]).
    """
    if result.status not in (Status.FAULT, Status.CLEAN) or result.stopped:
        return None
    launches = [finding.launch for finding in result.findings if ends_device(finding)]
    if launches:
        return TrialOutcome(ILLEGAL, _stage(result, min(launches)))
    served = result.service is not None and result.service.finished and result.service.tokens_right
    return TrialOutcome(RIGHT if served else WRONG)


def ends_device(finding: Finding) -> bool:
    """Whether a device stops at this access.

    It does at a misaligned one, at one that belongs to no tensor, and at one that reaches
    MAPPING_GRANULE bytes or more past the end of its tensor, or as far before the start. Where the
    width of an access is more than an element, the reach is an upper bound.
    """
    if finding.kind is Kind.MISALIGNED_ACCESS:
        return True
    if finding.kind not in OUT_OF_BOUNDS:
        return False
    return finding.tensor is None or _reach(finding) >= MAPPING_GRANULE


def _reach(finding: Finding) -> int:
    """Bytes from the tensor to the start of the farthest access of a finding."""
    first, last = finding.elements or (0, 0)
    width = finding.width or 1
    if finding.bytes_past_end is not None:
        return finding.bytes_past_end + (last - first) * width
    return max(0, -first * width)


def _stage(result: TrialResult, launch: int) -> int | None:
    for first, last, stage in result.metrics.get("launch_stages", ()):
        if first <= launch <= last:
            return int(stage)
    return None


def contradiction(hypothesis: Hypothesis, facts: Facts) -> str:
    """What a report's facts say against a hypothesis; "" if nothing."""
    if hypothesis.fixed_in and _release(hypothesis.fixed_in) <= _release(facts.fails_in):
        return f"fixed in {hypothesis.fixed_in}, and {facts.fails_in} fails"
    if hypothesis.needs_hit and not facts.cache_hit:
        return "needs a cache hit, and there was none"
    others = [runner for runner in facts.runners if hypothesis.runner not in (None, runner)]
    return f"runner {others[0]} fails as well, which has it not" if others else ""


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def weigh(case: Case, plan: Plan, results: Mapping[str, Sequence[TrialResult]]) -> Weighed | None:
    """The hypotheses of a case that ran, against its controls; None if there are none.

    results: by lane, one for each step of the plan. A lane that executes kernels comes first.
    """
    ran = {step.variant for step in plan.steps if step.wanted.open}
    if not ran:
        return None
    seen = _observed(plan, results)
    hypotheses = [h for h in case.hypotheses if h.variant in ran]
    return weighed(hypotheses, case.controls, seen)


def _observed(
    plan: Plan, results: Mapping[str, Sequence[TrialResult]]
) -> dict[tuple[str, str], tuple[TrialOutcome, str]]:
    seen: dict[tuple[str, str], tuple[TrialOutcome, str]] = {}
    for lane in sorted(plan.lanes, key=lambda name: not CATALOG[name].kernels):
        for step, result in zip(plan.steps, results.get(lane, ()), strict=False):
            found = outcome(result)
            if step.control is not None and found is not None:
                seen.setdefault((step.variant, step.control), (found, lane))
    return seen


def weighed(
    hypotheses: Iterable[Hypothesis],
    controls: Sequence[Control],
    seen: Mapping[tuple[str, str], tuple[TrialOutcome, str]],
) -> Weighed:
    """The same, from outcomes and their lanes by hypothesis and control."""
    cells: list[Cell] = []
    out: dict[str, tuple[str, ...]] = {}
    survive, undecided = [], []
    for hypothesis in hypotheses:
        row = [_cell(hypothesis, control, seen) for control in controls]
        cells += row
        against = tuple(cell.control for cell in row if cell.meets is False)
        open_ = [c for c in row if c.meets is None and _reported(controls, c.control)]
        if against:
            out[hypothesis.variant] = against
        elif open_:
            undecided.append(hypothesis.variant)
        else:
            survive.append(hypothesis.variant)
    return Weighed(
        tuple(cells), out, tuple(survive), tuple(undecided), proposals(controls, survive, seen)
    )


def _reported(controls: Sequence[Control], name: str) -> bool:
    return any(c.id == name and (c.reported or c.facts) for c in controls)


def _cell(
    hypothesis: Hypothesis,
    control: Control,
    seen: Mapping[tuple[str, str], tuple[TrialOutcome, str]],
) -> Cell:
    name = hypothesis.variant
    if control.facts is not None:
        against = contradiction(hypothesis, control.facts)
        return Cell(name, control.id, None, not against, contradicts=against)
    found, lane = seen.get((name, control.id), (None, None))
    meets = None
    if control.reported is not None and found is not None:
        meets = found.meets(TrialOutcome(control.reported.outcome, control.reported.stage))
    return Cell(name, control.id, found, meets, lane)


def proposals(
    controls: Sequence[Control],
    survivors: Sequence[str],
    seen: Mapping[tuple[str, str], tuple[TrialOutcome, str]],
) -> tuple[Proposal, ...]:
    """Untried controls that tell survivors apart, the most telling first, the cheaper on a tie."""
    found: list[tuple[float, int, Proposal]] = []
    for control in controls:
        if control.reported is not None or control.facts is not None:
            continue
        outcomes = {
            name: seen[name, control.id][0] for name in survivors if (name, control.id) in seen
        }
        if len(outcomes) < len(survivors):
            continue
        bits = entropy(Counter(outcomes.values()).values())
        if bits > 0:
            found.append((bits, control.minutes, Proposal(control.id, bits, outcomes)))
    found.sort(key=lambda entry: (-entry[0], entry[1]))
    return tuple(proposal for _, _, proposal in found)


def entropy(counts: Iterable[int]) -> float:
    """Bits of learning which class came out, of classes with these many equally likely members."""
    sizes = [count for count in counts if count]
    total = sum(sizes)
    return -sum(n / total * math.log2(n / total) for n in sizes) if len(sizes) > 1 else 0.0
