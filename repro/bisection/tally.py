"""What the trials of each build add up to. Pure.

A clean trial is *right-censored*: it says nothing about what would have come after its end. It
counts in full where it went as far as the farthest fault that was seen (the horizon), else by the
share of faults that had come by then, and for nothing where none had.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .verdicts import (
    Bad,
    Event,
    Exposure,
    Good,
    Infra,
    Mark,
    Marked,
    Observation,
    Opened,
    Other,
    Untestable,
    effective,
)

UNITS = ("tokens", "requests", "seconds")  # the first that most faults have
SHORT_TRIALS = 3  # clean trials, all too short to count, after which a build is untestable
FULL = 0.5  # the weight from which a clean trial stands for one
WORN = 20  # trials of a build that said nothing, after which it is not tried again


@dataclass(frozen=True, slots=True)
class Tally:
    """The trials of one build. cleans: the weight of each clean trial, 0 left out; `short` counts
    those. others: signatures of other faults. refused: trials in which it was untestable.
    untestable: why it is, where no trial says that it can be tested, or too many said nothing.
    infra: failures of the machine since the session was taken up and since the last trial that
    ended. *_at: numbers of events, -1 for none. trials: all of them.
    """

    trials: int = 0
    bads: int = 0
    cleans: tuple[float, ...] = ()
    short: int = 0
    others: tuple[str, ...] = ()
    untestable: Untestable | None = None
    refused: int = 0
    infra: int = 0
    marked: Marked | None = None
    first_clean_at: int = -1
    last_bad_at: int = -1
    cleans_since_bad: int = 0

    @property
    def bad(self) -> bool:
        return self.bads > 0

    @property
    def sure(self) -> bool:
        """Whether a person said that it is good."""
        return self.marked is Marked.GOOD

    @property
    def full(self) -> int:
        """Clean trials that stand for one."""
        return sum(weight >= FULL for weight in self.cleans)

    @property
    def idle(self) -> int:
        """Trials that ended and said nothing of the fault."""
        return self.short + len(self.others) + self.refused

    @property
    def worn(self) -> bool:
        """Whether more trials are of no use."""
        return self.idle >= WORN

    @property
    def tested(self) -> bool:
        return self.bad or bool(self.cleans) or self.sure

    @property
    def mixed(self) -> bool:
        """Whether the fault shows only sometimes in this build."""
        return self.bad and self.full > 0


NEVER = Tally()


@dataclass(frozen=True, slots=True)
class Horizon:
    """How far trials went until the fault, ascending, in one unit; no unit, nothing to compare."""

    unit: str | None
    reached: tuple[float, ...] = ()

    def weight(self, exposure: Exposure) -> float:
        """What a clean trial of this exposure counts, 0 to 1."""
        if self.unit is None:
            return 1.0
        until = getattr(exposure, self.unit)
        if until is None:
            return 0.0
        if until >= self.reached[-1]:
            return 1.0
        return bisect_right(self.reached, until) / (len(self.reached) + 1)


def horizon(observations: Iterable[Observation]) -> Horizon:
    """The horizon of the faults that were seen."""
    seen = [o.verdict.exposure for o in observations if isinstance(o.verdict, Bad)]
    known: Counter[str] = Counter()
    for exposure in seen:
        known.update(unit for unit in UNITS if getattr(exposure, unit) is not None)
    if not known:
        return Horizon(None)
    unit = max(UNITS, key=lambda u: (known[u], -UNITS.index(u)))
    return Horizon(unit, tuple(sorted(v for e in seen if (v := getattr(e, unit)) is not None)))


@dataclass(slots=True)
class _Sum:
    trials: int = 0
    bads: int = 0
    cleans: list[float] = field(default_factory=list)
    short: int = 0
    others: list[str] = field(default_factory=list)
    untestable: Untestable | None = None
    refused: int = 0
    infra: int = 0
    first_clean_at: int = -1
    last_bad_at: int = -1
    cleans_since_bad: int = 0


def tallies(events: Sequence[Event], *, others: int) -> dict[str, Tally]:
    """A tally for each build that was tried or marked.

    others: so many trials that end with another fault, and none otherwise, make it untestable.
    """
    events = effective(events)
    reach = horizon(e for e in events if isinstance(e, Observation))
    sums: dict[str, _Sum] = {}
    marks: dict[str, Marked] = {}
    for at, event in enumerate(events):
        if isinstance(event, Mark):
            marks[event.build] = event.verdict
        elif isinstance(event, Opened):
            for one in sums.values():
                one.infra = 0
        elif isinstance(event, Observation):
            _add(sums.setdefault(event.build, _Sum()), at, event, reach)
    return {
        build: _tally(build, sums.get(build, _Sum()), marks.get(build), others)
        for build in sums.keys() | marks.keys()
    }


def _add(one: _Sum, at: int, event: Observation, reach: Horizon) -> None:
    one.trials += 1
    verdict = event.verdict
    if isinstance(verdict, Infra):
        one.infra += 1
        return
    one.infra = 0
    if isinstance(verdict, Bad):
        one.bads += 1
        one.last_bad_at = at
        one.cleans_since_bad = 0
    elif isinstance(verdict, Good):
        weight = reach.weight(verdict.exposure)
        if weight == 0:
            one.short += 1
            return
        one.cleans.append(weight)
        one.cleans_since_bad += 1
        if one.first_clean_at < 0:
            one.first_clean_at = at
    elif isinstance(verdict, Other):
        one.others.append(verdict.signature)
    else:
        one.untestable = verdict
        one.refused += 1


def _tally(build: str, one: _Sum, mark: Marked | None, others: int) -> Tally:
    if mark is Marked.SKIP:
        # one person's word about one build says nothing of its neighbours
        reason = Untestable("marked to be skipped", f"marked {build}")
        return Tally(one.trials, untestable=reason, marked=mark)
    if mark is Marked.GOOD:
        return Tally(one.trials, others=tuple(one.others), marked=mark)
    if mark is Marked.BAD:
        return Tally(one.trials, bads=1, others=tuple(one.others), marked=mark)
    untestable = None
    if not one.bads and not one.cleans:
        untestable = one.untestable
        if untestable is None and len(one.others) >= others:
            untestable = _other(one.others)
        if untestable is None and one.short >= SHORT_TRIALS:
            untestable = Untestable(
                "its clean trials all ended before the fault is known to come", "short"
            )
    idle = one.short + len(one.others) + one.refused
    if not one.bads and untestable is None and idle >= WORN:
        untestable = Untestable(
            f"{idle} of its trials ended without telling anything", f"worn {build}"
        )
    same: dict[str, Any] = {
        name: getattr(one, name)
        for name in ("trials", "bads", "short", "refused", "infra", "first_clean_at", "last_bad_at")
    }
    return Tally(
        **same,
        cleans=tuple(one.cleans),
        others=tuple(one.others),
        untestable=untestable,
        cleans_since_bad=one.cleans_since_bad,
    )


def _other(signatures: Sequence[str]) -> Untestable:
    kinds = sorted(set(signatures))
    if len(kinds) == 1:
        return Untestable(f"ends with another fault: {kinds[0]}", f"other {kinds[0]}")
    return Untestable("ends with other faults", f"others {', '.join(kinds)}")


def on_line(names: Sequence[str], found: Mapping[str, Tally]) -> list[Tally]:
    """The tallies along a line of builds."""
    return [found.get(name, NEVER) for name in names]
