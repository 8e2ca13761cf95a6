"""Which defects a build has, and the verdict over a case: readings of probes put together. Pure.

A defect *acts* by one of several routes. A route is a set of code facts that must all hold, and
the settings it needs. What a probe does not know makes a route unknown unless another fact of it
is known not to hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from . import exposure
from .exposure import Defaults, Value


class BuildVerdict(StrEnum):
    """Verdict of `check` over one build."""

    AFFECTED = "AFFECTED"
    NOT_AFFECTED = "NOT AFFECTED"
    UNTESTABLE = "UNTESTABLE"


class Fact(Protocol):
    """What is known of a probe: its value, None for unknown, and why."""

    @property
    def value(self) -> str | Mapping[str, str] | None: ...

    @property
    def detail(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Route:
    """code: probe → the values it may have. settings: setting → the value needed."""

    code: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Defect:
    """A code fault. routes: as the source says it; kernel: as the build's kernels do, which may
    name facts of the source too. latent: no supported settings are known in which it acts; it is
    shown, and counts only where it is asked for by name. no_engine: why no engine answers it."""

    id: str
    says: str
    routes: tuple[Route, ...]
    latent: bool = False
    kernel: tuple[Route, ...] = ()
    no_engine: str = ""

    @property
    def probes(self) -> tuple[str, ...]:
        """What it asks of a build, in the order of its routes."""
        return tuple(dict.fromkeys(probe for route in self.routes for probe in route.code))


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: ids of the defects, () for all that are not latent; settings that are fixed;
    whether everything else is as the build has it by default."""

    defects: tuple[str, ...] = ()
    fixed: Mapping[str, Value] = field(default_factory=dict)
    default_only: bool = False


@dataclass(frozen=True, slots=True)
class Acting:
    """A route of a defect that a build has. default, models: see Exposure."""

    defect: str
    settings: Mapping[str, Value]
    default: bool | None
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a defect in a build: `present`, `absent` or `unknown`, and why."""

    defect: str
    state: str
    counted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict over a build. exposure: of the defects that count."""

    verdict: BuildVerdict
    exposure: tuple[Acting, ...]
    standings: tuple[Standing, ...]
    reasons: tuple[str, ...]


def judge(
    defects: Sequence[Defect], facts: Mapping[str, Fact], defaults: Defaults, question: Question
) -> Judgement:
    """The verdict: AFFECTED if a defect that counts acts; UNTESTABLE if that is open for one of
    them; else NOT AFFECTED."""
    acting: list[Acting] = []
    standings: list[Standing] = []
    for defect in defects:
        counted = defect.id in question.defects if question.defects else not defect.latent
        standing, found = _standing(defect, facts, defaults, question, counted)
        standings.append(standing)
        acting += found if counted else []
    counting = [standing for standing in standings if standing.counted]
    states = {standing.state for standing in counting}
    verdict = BuildVerdict.NOT_AFFECTED
    if "present" in states:
        verdict = BuildVerdict.AFFECTED
    elif "unknown" in states or not counting:
        verdict = BuildVerdict.UNTESTABLE
    reasons = [s.reason for s in counting if s.state == "present"]
    reasons += [s.reason for s in counting if s.state == "unknown"]
    if verdict is BuildVerdict.NOT_AFFECTED:
        reasons += [s.reason for s in counting]
    return Judgement(verdict, tuple(acting), tuple(standings), tuple(reasons))


def _standing(
    defect: Defect,
    facts: Mapping[str, Fact],
    defaults: Defaults,
    question: Question,
    counted: bool,
) -> tuple[Standing, list[Acting]]:
    found: list[Acting] = []
    open_: list[str] = []
    against: list[str] = []
    for route in defect.routes:
        holds, why = _holds(route, facts)
        if holds is False:
            against.append(why)
            continue
        if not exposure.possible(route.settings, question.fixed):
            against.append(f"it needs {phrase(route.settings)}")
            continue
        shown = exposure.exposure(route.settings, question.fixed, defaults)
        if question.default_only and shown.default is False:
            against.append(f"not by default: it needs {phrase(route.settings)}")
        elif holds is None:
            open_.append(why)
        elif question.default_only and shown.default is None:
            open_.append("the defaults of this build are not known")
        else:
            found.append(Acting(defect.id, route.settings, shown.default, shown.models))
    if found:
        says = f"{defect.id}: {defect.says} ({phrase(found[0].settings) or 'in any settings'})"
        return Standing(defect.id, "present", counted, says), found
    if open_:
        reason = f"{defect.id}: not known: {'; '.join(dict.fromkeys(open_))}"
        return Standing(defect.id, "unknown", counted, reason), []
    reason = f"{defect.id}: no: {'; '.join(dict.fromkeys(against))}"
    return Standing(defect.id, "absent", counted, reason), []


def _holds(route: Route, facts: Mapping[str, Fact]) -> tuple[bool | None, str]:
    """Whether all code facts of a route hold; None if that is open. With the fact that decides."""
    unknown: list[str] = []
    for probe, allowed in route.code.items():
        value = facts[probe].value
        if value is None:
            unknown.append(f"{probe}: {facts[probe].detail}")
        elif value not in allowed:
            return False, f"{probe} is {value}"
    return (None, "; ".join(unknown)) if unknown else (True, "")


def phrase(settings: Mapping[str, Value]) -> str:
    """`runner v1, async on, k ≥ 3`."""
    return ", ".join(
        f"{name} ≥ {value}" if isinstance(value, int) else f"{name} {value}"
        for name, value in settings.items()
    )
