"""Which variations of the two builds at a boundary to try, and what carries the fault. Pure.

Two kinds. A *switch* of the engine is set otherwise; where its default moved at the boundary, the
default itself may be all that the verdict turned on. A set of *packages* is taken from the other
build; where the fault goes with it, the engine's own code is not what changed. What a walk yields
follows from the outcomes so far alone, so that it goes on from a journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .ends import repeats
from .posterior import clean_chance
from .question import Options
from .tally import Tally
from .variation import Change, Fault, Variation, Varied

MOST = 16  # sets of packages that are tried beside one build
INFRA_TRIALS = 3  # failures of the machine in a row, at which a variation is left


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a variation. chance: of the fault having been missed, where it was not shown."""

    fault: Fault
    reason: str = ""
    chance: float = 0.0
    temporary: bool = False


# The outcome of a variation, None as long as there is none.
Decided = Callable[[Variation], Outcome | None]


def outcome(one: Tally | None, bad: Tally, options: Options) -> Outcome | None:
    """What the trials of a variation say; None where another one is wanted.

    bad: the trials of the build that shows the fault, which tell how often it does. A fault that
    was seen once is there; that it is not there takes as many clean trials as make it as sure as
    the search was to be.
    """
    if one is None:
        return None
    if one.bad:
        return Outcome(Fault.SHOWN)
    if one.untestable is not None:
        return Outcome(Fault.UNKNOWN, one.untestable.reason)
    if one.infra >= INFRA_TRIALS:
        return Outcome(Fault.UNKNOWN, "its trials failed for the machine", temporary=True)
    if one.cleans:
        sure = options.exact or options.deterministic or bad.marked is not None
        chance = 0.0 if sure else clean_chance(bad, one.cleans, options.flaky)
        if chance <= 1 - options.confidence:
            return Outcome(Fault.NOT_SHOWN, chance=chance)
    if len(one.cleans) + one.idle >= max(options.end_trials, repeats(options)):
        return Outcome(Fault.UNKNOWN, f"{one.trials} trials did not tell")
    return None


def switched(
    bad: str,
    good: str,
    alternatives: Mapping[str, Sequence[str]],
    moved: Mapping[str, str],
    decided: Decided,
) -> Iterator[Variation]:
    """Variations of switches: each other value of each on the bad build; each default that moved,
    as the bad build has it, on the good one. Where several moved and none by itself takes the fault
    away, all of them together, and then each left out.

    alternatives: switch → its values besides that of the bad build. moved: switch whose default
    moved and that is left to the engine → value of the bad build. It ends at the first variation
    without an outcome.
    """
    back = []
    for name, values in alternatives.items():
        for value in values:
            single = Variation(bad, True, Varied.SWITCH, ((name, value),))
            yield single
            if name in moved:
                back.append(single)
    for change in moved.items():
        yield Variation(good, False, Varied.SWITCH, (change,))
    outcomes = [decided(one) for one in back]
    if len(back) < 2 or any(o is None or o.fault is Fault.NOT_SHOWN for o in outcomes):
        return
    kept = tuple(one.changes[0] for one in back)
    whole = Variation(bad, True, Varied.SWITCH, kept)
    yield whole
    found = decided(whole)
    if found is None or found.fault is not Fault.NOT_SHOWN:
        return
    for change in kept:
        rest = tuple(one for one in kept if one != change)
        if len(rest) < 2:
            continue  # tried by itself above
        less = Variation(bad, True, Varied.SWITCH, rest)
        yield less
        found = decided(less)
        if found is None:
            return
        if found.fault is Fault.NOT_SHOWN:
            kept = rest


def crossed(
    build: str, shows: bool, changes: Sequence[Change], decided: Decided
) -> Iterator[Variation]:
    """Sets of the other build's packages beside a build: all of them; halves of a set with which
    the verdict turns, or which cannot be had together. MOST at most; it ends at the first one
    without an outcome."""
    sets = [tuple(changes)] if changes else []
    for _ in range(MOST):
        if not sets:
            return
        group = sets.pop(0)
        variation = Variation(build, shows, Varied.PACKAGES, group)
        yield variation
        found = decided(variation)
        if found is None:
            return
        if len(group) > 1 and found.fault in {Fault.UNKNOWN, variation.turned}:
            middle = len(group) // 2
            sets[:0] = [group[:middle], group[middle:]]


def carriers(tried: Sequence[tuple[Variation, Outcome]]) -> list[Variation]:
    """The variations with which the verdict turned, but for those of which a part is enough."""
    turned = [variation for variation, found in tried if found.fault is variation.turned]
    return [
        one
        for one in turned
        if not any(
            (other.build, other.varied) == (one.build, one.varied)
            and set(other.changes) < set(one.changes)
            for other in turned
        )
    ]
