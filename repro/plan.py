"""From a case to its trials. Pure: reads no file, starts nothing.

Points: the case's own (the *named* one, with --set applied); its faces, the points that a `when` of
an expectation describes (only where nothing was set by hand); and with --sweep the cross product.
Literal expectations hold at the points the file itself names; elsewhere, and there as well, the
scenario's closed form says what must be found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from .errors import UsageError
from .escape import quoted
from .records import Prediction, Scalar, Status, Trial
from .scenarios import registry
from .scenarios.declare import Declaration, nearest

if TYPE_CHECKING:
    from .case import Case

Point = Mapping[str, Scalar]


class ClosedForm(Protocol):
    """The part of a scenario that planning asks."""

    def predict(self, point: Point, settings: Point) -> tuple[Prediction, ...]: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What must come out of a variant at a point.

    predicted: the closed form, () for clean. literal: what the case file says
    there (findings; () where it says clean or nothing). literal_clean: it says clean.
    fix: every expectation of the variant is clean, so it must also serve. open: a hypothesis, of
    which nothing is wanted but an answer.
    """

    predicted: tuple[Prediction, ...]
    literal: tuple[Mapping[str, Scalar], ...]
    literal_clean: bool
    fix: bool
    open: bool = False

    @property
    def status(self) -> Status:
        if self.open:
            return Status.UNKNOWN
        if self.literal_clean:
            return Status.CLEAN
        return Status.FAULT if self.predicted or self.literal else Status.CLEAN


@dataclass(frozen=True, slots=True)
class Step:
    """A variant at a point, for every lane: `settings` and `wanted` with it.

    control: the experiment whose point it is, for a hypothesis. only: the one lane that runs it,
    where what nobody has reported is asked for a ranking and not for evidence.
    """

    variant: str
    point: Point
    settings: Point
    wanted: Wanted
    control: str | None = None
    only: str | None = None

    def left_to(self, lane: str) -> str:
        """Why `lane` does not run this step; "" if it does."""
        if self.only in (None, lane):
            return ""
        return f"what nobody has tried yet is asked of lane {self.only} alone"


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a case, the lanes they run in, and what of the case was not asked for.

    swept: the steps go over the case's sweep, not only over its own point and its faces.
    """

    case: str
    steps: tuple[Step, ...]
    lanes: tuple[str, ...]
    left_out: tuple[str, ...]
    swept: bool = False

    def trials(self, lane: str) -> list[Trial]:
        return [
            Trial(self.case, step.variant, lane, step.point, step.wanted.status)
            for step in self.steps
        ]


def plan(
    case: Case,
    written: Case,
    *,
    sweep: bool = False,
    variants: Sequence[str] = (),
    lanes: Sequence[str] = (),
) -> Plan:
    """Plan `case` (overrides applied) of which `written` is the file's own text.

    variants, lanes: what was asked for, all if empty. UsageError for a name the case has not, and
    for a point that contradicts itself or a variant that was asked for.
    """
    chosen = _chosen("variant", variants, tuple(case.variants), case.id)
    chosen_lanes = _chosen("lane", lanes, case.lanes, case.id)
    from .case import points, settings
    from .case.points import refuse_contradiction

    declaration = registry.declaration(case.scenario)
    closed = cast(ClosedForm, registry.load(case.scenario))
    named = points(written)[0]
    own = points(case, sweep, variants=chosen)
    refuse_contradiction(case, own[0], declaration, chosen)
    faces = [] if case.params != written.params else _faces(written, named)
    steps = []
    open_variants = {hypothesis.variant for hypothesis in case.hypotheses}
    for point in (*own, *(face for face in faces if face not in own)):
        for variant in chosen:
            if variant in open_variants:
                continue
            expectations = [e for e in written.expect if e.variant == variant]
            applies = [e for e in expectations if e.applies(point)]
            if point in faces and point not in own and not applies:
                continue
            in_file = point == named or point in faces
            given = settings(case, variant, declaration)
            wanted = Wanted(
                predicted=closed.predict(point, given),
                literal=tuple(
                    e.finding.model_dump(mode="json", exclude_none=True)
                    for e in applies
                    if in_file and e.finding is not None
                ),
                literal_clean=in_file and any(e.clean for e in applies),
                fix=all(e.clean for e in expectations),
            )
            steps.append(Step(variant, point, given, wanted))
    if not sweep:
        steps += _open(case, own[0], chosen, chosen_lanes, declaration)
    left_out = [f"variant {name}" for name in case.variants if name not in chosen]
    left_out += [f"lane {name}" for name in case.lanes if name not in chosen_lanes]
    return Plan(case.id, tuple(steps), chosen_lanes, tuple(left_out), sweep)


def _open(
    case: Case, own: Point, chosen: Sequence[str], lanes: Sequence[str], declaration: Declaration
) -> list[Step]:
    """Every hypothesis under every control that has a point; untried ones in the first lane only.

    UsageError if a control contradicts what was set by hand.
    """
    from .case import settings

    wanted = Wanted((), (), literal_clean=False, fix=False, open=True)
    steps = []
    for hypothesis in case.hypotheses:
        if hypothesis.variant not in chosen:
            continue
        given = settings(case, hypothesis.variant, declaration)
        for control in case.controls:
            if control.sets is None:
                continue
            point = {**own, **control.sets}
            found = declaration.contradiction(point, given)
            if found is not None:
                raise UsageError(f"control {control.id} of case {case.id}: {': '.join(found)}")
            only = None if control.reported else lanes[0]
            steps.append(Step(hypothesis.variant, point, given, wanted, control.id, only))
    return steps


def _faces(case: Case, named: Point) -> list[Point]:
    """The points that `when`s describe, besides the named one, in order of appearance."""
    from .case.points import when_points

    faces: list[Point] = []
    for expectation in case.expect:
        for face in when_points(expectation, named):
            if face != named and face not in faces:
                faces.append(face)
    return faces


def _chosen(what: str, asked: Sequence[str], known: tuple[str, ...], case: str) -> tuple[str, ...]:
    for name in asked:
        if name not in known:
            raise UsageError(
                f"case {case} has no {what} {quoted(name)}; it has {', '.join(known)}",
                hint=nearest(name, known) or f"{what}s: {', '.join(known)}",
            )
    return tuple(name for name in known if name in asked) if asked else known
