"""Which experiments a question takes, and the verdict that their answers make. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...records import Scalar
from ..defects import Acting, BuildVerdict, Defect, Judgement, Question, Standing
from ..exposure import Value
from .answer import Answer, Sign
from .declare import EngineSpec


@dataclass(frozen=True, slots=True)
class Experiment:
    """Settings to bring an engine into. spec: what is played then. decides: ids of defects. expect:
    of a control, what it must show; "" for one that decides. change: made to the engine on
    purpose. models: the point of the scenario that stands for it."""

    spec: EngineSpec
    id: str
    title: str
    settings: Mapping[str, Value]
    decides: tuple[str, ...] = ()
    expect: str = ""
    change: str = ""
    served: bool = False
    models: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """An experiment with its answer. settings: those in which the engine came up, as it says."""

    experiment: Experiment
    answer: Answer
    settings: Mapping[str, Value] = field(default_factory=dict)


def experiments(
    spec: EngineSpec, defects: Sequence[Defect], question: Question, controls: bool
) -> list[Experiment]:
    """The experiments that answer `question`, then the controls.

    A setting that is fixed takes the place of the one in which a defect is looked for, so one
    experiment may decide several.
    """
    counted = _counted(spec, defects, question)
    each = [_experiments(one, counted, question, controls) for one in spec.all]
    return [
        *(e for some in each for e in some if not e.expect),
        *(e for some in each for e in some if e.expect),
    ]


def _experiments(
    spec: EngineSpec, counted: Sequence[str], question: Question, controls: bool
) -> list[Experiment]:
    found: dict[tuple[tuple[str, Value], ...], Experiment] = {}
    for defect in counted:
        if defect not in spec.defects:
            continue
        settings = {**spec.defects[defect], **question.fixed}
        key = tuple(sorted(settings.items()))
        before = found[key].decides if key in found else ()
        decides = (*before, defect)
        found[key] = Experiment(
            spec, "-".join(decides), ", ".join(decides), settings, decides, models=spec.models
        )
    base = {**next(iter(spec.defects.values()), {}), **question.fixed}
    more = [
        Experiment(
            spec,
            f"control-{c.id}",
            c.title,
            {**base, **c.settings},
            expect=c.expect,
            change=c.change,
            served=c.served,
            models=c.models,
        )
        for c in spec.controls
    ]
    # an experiment that decides nothing has only its controls to show
    shown = controls or not (spec.defects or question.defects)
    return [*found.values(), *(more if shown else ())]


def _counted(spec: EngineSpec, defects: Sequence[Defect], question: Question) -> list[str]:
    """Defects that are judged: those asked for, else those that an experiment answers."""
    if question.defects:
        return list(question.defects)
    return [d.id for d in defects if d.id in _decided(spec) and not d.latent]


def _decided(spec: EngineSpec) -> set[str]:
    return {name for one in spec.all for name in one.defects}


def judge(
    spec: EngineSpec, defects: Sequence[Defect], question: Question, done: Sequence[Done]
) -> Judgement:
    """AFFECTED if a sign was seen; UNTESTABLE if an answer that counts is open, or a control shows
    the opposite of what it must; else NOT AFFECTED. A control that was not had decides nothing."""
    counted = set(_counted(spec, defects, question))
    acting: list[Acting] = []
    standings: list[Standing] = []
    for defect in defects:
        one = next((d for d in done if defect.id in d.experiment.decides), None)
        asked = defect.id in _decided(spec)
        standings.append(_standing(defect, one, defect.id in counted, asked))
        if one is not None and one.answer.sign is Sign.SEEN and defect.id in counted:
            # a number is what was tried, not the least that is needed
            shown = {name: v for name, v in one.settings.items() if isinstance(v, str)}
            acting.append(Acting(defect.id, shown, None, ()))
    failed = [d for d in done if d.experiment.expect and d.answer.sign != d.experiment.expect]
    odd = any(d.answer.sign in (Sign.SEEN, Sign.NOT_SEEN) for d in failed)
    failures = [_failed(d) for d in failed]
    counting = [standing for standing in standings if standing.counted]
    states = {standing.state for standing in counting}
    verdict = BuildVerdict.NOT_AFFECTED
    if odd or not counting:
        verdict = BuildVerdict.UNTESTABLE
    elif "present" in states:
        verdict = BuildVerdict.AFFECTED
    elif "unknown" in states:
        verdict = BuildVerdict.UNTESTABLE
    order = ("present", "unknown", "absent")
    reasons = [s.reason for state in order for s in counting if s.state == state]
    return Judgement(verdict, tuple(acting), tuple(standings), (*failures, *reasons))


def _standing(defect: Defect, done: Done | None, counted: bool, asked: bool) -> Standing:
    if done is None:
        why = "not asked"
        if not asked:
            why = defect.no_engine or "no experiment on an engine answers it"
            why += "; --depth source does"
        reason = f"{defect.id}: {why}"
        return Standing(defect.id, "unknown", counted, reason)
    answer = done.answer
    state = {Sign.SEEN: "present", Sign.NOT_SEEN: "absent"}.get(answer.sign, "unknown")
    said = {"present": defect.says, "absent": "no", "unknown": "not known"}[state]
    with_ = ", ".join(f"{name} {value}" for name, value in done.settings.items())
    return Standing(defect.id, state, counted, f"{defect.id}: {said}: {answer.reason} ({with_})")


def _failed(done: Done) -> str:
    experiment, answer = done.experiment, done.answer
    return (
        f"control {experiment.id.removeprefix('control-')}: the sign was to be {experiment.expect} "
        f"and is {answer.sign}: {answer.reason}"
    )
