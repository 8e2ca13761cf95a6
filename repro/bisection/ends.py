"""The ends of a search: is one good and the other bad, and does the fault show every time? Pure.

Positions count from the end that should be good; the last one should be bad. It is tried first: it
tells how often and how late the fault comes, without which a clean trial elsewhere says little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..escape import printable
from .question import Options
from .tally import Tally


@dataclass(frozen=True, slots=True)
class Wanted:
    """Trials to run: (position, how many, why), the most urgent first."""

    trials: tuple[tuple[int, int, str], ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """There is nothing to search between these ends."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ends:
    """low: was clean; high: was bad. share: prior of `low` being bad already, in builds.

    turned: they are the other way round, and positions count from the other end.
    """

    low: int
    high: int
    share: float = 1.0
    turned: bool = False


Step = Wanted | Refused | Ends
# rounds of trials of a bad end that is clean, before the good end is tried
UNSEEN = 3
LOW, HIGH, WALK = "good end", "bad end", "looking for a good end"


def ends(
    names: Sequence[str], line: Sequence[Tally], absent: frozenset[int], options: Options
) -> Step:
    """What is known of the ends, or what to try for it."""
    if len(names) < 2:
        return Refused("a bisection needs at least two builds")
    last = len(names) - 1
    for position in (last, 0) if options.ends_given else (last,):
        if problem := _refusal(names[position], line[position], position in absent):
            return Refused(problem)
    bad = line[last]
    if bad.bad and line[0].bad and options.ends_given:
        return Refused(f"{named(names[0])} shows the fault as well as {named(names[last])}")
    seeds = _seeds(bad, options)
    if not options.ends_given:
        if not bad.bad:
            return _unseen(names[last], bad, last, options)
        return Wanted(((last, seeds, HIGH),)) if seeds else _walk(names, line, absent, options)
    need_low = _cleans(line[0], options)
    if line[0].bad:
        need_high = _cleans(bad, options)
        if need_high:
            return Wanted(((last, need_high, HIGH),))
        return Ends(0, last, turned=True)
    wanted = []
    if not bad.bad:
        # to look at the good end only for having been told the ends in the wrong order is dear
        rounds = 1 if options.exact or options.deterministic else UNSEEN
        first = rounds * repeats(options) - len(bad.cleans) - bad.idle
        if first > 0 and not bad.sure:
            wanted.append((last, first, HIGH))
        if need_low:
            wanted.append((0, need_low, LOW))
        return Wanted(tuple(wanted)) if wanted else _unseen(names[last], bad, last, options)
    if seeds:
        wanted.append((last, seeds, HIGH))
    if need_low:
        wanted.append((0, need_low, LOW))
    return Wanted(tuple(wanted)) if wanted else Ends(0, last)


def turned_ends(names: Sequence[str], line: Sequence[Tally], options: Options) -> Step:
    """The same once it is known that they are the other way round; positions turned already."""
    last = len(names) - 1
    seeds = _seeds(line[last], options)
    need = _cleans(line[0], options)
    wanted = [(last, seeds, HIGH)] if seeds else []
    wanted += [(0, need, LOW)] if need else []
    return Wanted(tuple(wanted)) if wanted else Ends(0, last, turned=True)


def repeats(options: Options) -> int:
    """Trials of an end that must agree."""
    return 1 if options.exact or options.deterministic else options.repeats


def steady(line: Sequence[Tally], low: int, high: int, options: Options) -> bool:
    """Whether the fault shows every time: both ends agree with themselves, and so does every build
    between them."""
    if options.exact:
        return True
    if any(one.mixed for one in line[low:]):
        return False
    good, bad = line[low], line[high]
    enough = repeats(options)
    return (good.sure or good.full >= enough) and (bad.marked is not None or bad.bads >= enough)


def named(name: str) -> str:
    """A build's name, safe to print."""
    return printable(name)


def _seeds(bad: Tally, options: Options) -> int:
    """Trials that the bad end still needs; 0 if none."""
    if bad.marked is not None:
        return 0
    if bad.bads + len(bad.cleans) + bad.idle >= options.end_trials:
        return 0
    return max((options.faults if bad.mixed else repeats(options)) - bad.bads, 0)


def _cleans(good: Tally, options: Options) -> int:
    """Clean trials that a good end still needs; 0 if none."""
    if good.sure or len(good.cleans) + good.idle >= options.end_trials:
        return 0
    return max(repeats(options) - good.full, 0)


def _refusal(name: str, one: Tally, absent: bool) -> str | None:
    if absent:
        return f"{named(name)} is an end of the search and cannot be had"
    if one.untestable is not None:
        return f"{named(name)}, an end of the search: {printable(one.untestable.reason)}"
    return None


def _unseen(name: str, one: Tally, position: int, options: Options) -> Step:
    """The bad end is clean so far: try on, or give up where that is enough."""
    tried = len(one.cleans) + one.idle
    enough = 1 if options.exact or options.deterministic else options.end_trials
    if one.sure:
        return Refused(f"{named(name)}, the bad end, is marked good")
    if tried >= enough:
        trials = "a trial" if tried == 1 else f"{tried} trials"
        return Refused(f"{named(name)} did not show the fault in {trials}")
    return Wanted(((position, enough - tried, HIGH),))


def _walk(
    names: Sequence[str], line: Sequence[Tally], absent: frozenset[int], options: Options
) -> Step:
    """Back 1, 2, 4, 8… available builds from the bad end until one is clean."""
    order = [i for i in range(len(names)) if i not in absent]
    step, origin = 1, len(order) - 1
    while origin:
        at = max(origin - step, 0)
        while at and line[order[at]].untestable is not None:
            at -= 1
        position = order[at]
        one = line[position]
        if one.untestable is not None:
            return Refused(f"no good end: nothing before {named(names[order[at + 1]])} is testable")
        if not one.bad:
            need = _cleans(one, options)
            # nobody said that this one is good: as likely as not, the fault is older still
            share = float(len(names) - 1 - position)
            return Wanted(((position, need, WALK),)) if need else Ends(position, order[-1], share)
        if at == 0:
            return Refused(
                f"no good end: {named(names[position])}, the last build on that side, "
                "shows the fault"
            )
        step = max(step * 2, origin - at)
    return Refused("no good end: no other build is available")
