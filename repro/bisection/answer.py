"""A result, in the user's order of builds and words. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..escape import printable
from .blocks import Blocks
from .costs import Costs
from .ends import named
from .interval import Interval
from .question import Ending, Find, Kind, Options, Progress, Result
from .tally import Tally


@dataclass(frozen=True, slots=True)
class Found:
    """What a search knows between its ends, positions from the good end.

    mass: probability of each cell of the interval. confidence: that of the last cell.
    """

    names: Sequence[str]
    line: Sequence[Tally]
    blocks: Blocks
    interval: Interval
    mass: Sequence[float]
    rate: float | None


@dataclass(frozen=True, slots=True)
class Left:
    """What a search still has to do. cells: where the boundary can be if the fault always shows;
    shown: the bad build was seen bad again."""

    cells: int
    shown: bool
    cost: Costs


def fix(options: Options, turned: bool) -> bool:
    """Whether what is searched is the build that is good again."""
    return (options.find is Find.FIRST_GOOD) != turned


def nothing(reason: str, ending: Ending, notes: Sequence[str] = ()) -> Result:
    """There is not even a range."""
    return Result(Kind.NONE, ending, notes=(reason, *notes))


def answer(
    found: Found,
    options: Options,
    ending: Ending,
    unavailable: Mapping[str, str],
    notes: Sequence[str] = (),
) -> Result:
    """The result of a search that ended so."""
    interval, names = found.interval, found.names
    first, last = _range(found, options)
    previous, high = interval.cells[first - 1], interval.cells[last]
    backwards = fix(options, interval.turned)
    between = [names[i] for i in range(previous, high + 1)]
    candidates = between[:-1][::-1] if backwards else between[1:]
    inner = range(previous + 1, high)
    presumed = [names[i] for i in inner if i in found.blocks.presumed]
    tested = {
        names[i]: one.reason
        for i in inner
        if i in found.blocks.refused and (one := found.line[i].untestable)
    }
    missing = {names[i]: unavailable[names[i]] for i in inner if i in found.blocks.absent}
    build, other = (previous, high) if backwards else (high, previous)
    kind = Kind.NARROWED
    if ending is Ending.LOCATED and len(candidates) == 1:
        kind = Kind.FIRST_GOOD if backwards else Kind.FIRST_BAD
    confidence = min(1.0, sum(found.mass[first : last + 1]))
    return Result(
        kind,
        Ending.UNTESTABLE if ending is Ending.LOCATED and kind is Kind.NARROWED else ending,
        names[build],
        names[other],
        confidence,
        tuple(candidates),
        tested,
        tuple(presumed[::-1] if backwards else presumed),
        missing,
        found.rate,
        (
            *notes,
            *_notes(found, options, len(candidates), len(tested), len(presumed), len(missing)),
        ),
    )


def progress(found: Found, options: Options, left: Left, trials: int, seconds: float) -> Progress:
    """How far a search has come whose ends are known. trials, seconds: what it took so far.

    What is left is an expectation. Of a fault that shows every time, a batch cuts the cells into
    one part more than it has trials; of one that does not, a trial tells at most the capacity of
    its channel (one input silent, the other heard with probability p), and the last clean build has
    to be clean until the confidence is reached.
    """
    interval, names = found.interval, found.names
    first, last = _range(found, options)
    low, high = interval.cells[first - 1], interval.cells[last]
    if fix(options, interval.turned):
        low, high = high, low
    # new builds each time, but for the bad one once more
    again, jobs = int(not left.shown), options.jobs
    rounds = next(n for n in range(left.cells + 1) if (jobs + 1) ** n >= left.cells)
    more = float(rounds * jobs + again)
    if found.rate is not None:
        p = min(max(found.rate, 0.01), 0.99)
        silent = 1 - p
        nats = -sum(share * math.log(share) for share in found.mass if share > 0)
        more = nats / math.log1p(p * silent ** (silent / p)) + (0 if left.shown else 1 / p)
        if found.mass[-1] < options.confidence:
            more += math.log(1 - options.confidence) / math.log(silent)
    return Progress(
        names[low],
        names[high],
        abs(high - low),
        found.mass[-1],
        trials,
        seconds,
        more,
        more / jobs * left.cost.trial + rounds * left.cost.install + again * left.cost.load,
    )


def _range(found: Found, options: Options) -> tuple[int, int]:
    """First and last cell of what is left: the shortest stretch from either side that holds the
    boundary with the confidence asked for, or for certain where verdicts are exact."""
    first, last = 1, len(found.mass) - 1
    if found.mass[-1] >= options.confidence and not options.exact:
        return last, last
    held = sum(found.mass[1:])
    wanted = held if options.exact else min(options.confidence, held)
    while first < last:
        lower, upper = found.mass[first], found.mass[last]
        # an empty cell goes without arithmetic, which rounds
        if min(lower, upper) > 0 and held - min(lower, upper) < wanted:
            break
        held -= min(lower, upper)
        first, last = (first + 1, last) if lower <= upper else (first, last - 1)
    return first, last


def _notes(
    found: Found, options: Options, count: int, tested: int, presumed: int, missing: int
) -> list[str]:
    notes = []
    names, interval, line = found.names, found.interval, found.line
    if interval.turned:
        word = "the first good build" if fix(options, True) else "the first bad build"
        notes.append(f"the ends are the other way round, so this is a search for {word}")
    for bad, good in interval.flips:
        notes.append(
            f"not monotone: {named(names[bad])} shows the fault and {named(names[good])}, nearer "
            f"to {named(names[-1])}, does not; there is more than one boundary"
        )
    if count > 1:
        parts = [
            f"{number} {word}"
            for number, word in (
                (tested, "tested untestable"),
                (presumed, "presumed untestable"),
                (missing, "not to be had"),
            )
            if number
        ]
        why = f": {', '.join(parts)}" if parts else ""
        notes.append(f"could be any of {count}{why}")
    for i in range(interval.high + 1, len(line) - 1):
        if line[i].full and not line[i].bad:
            notes.append(
                f"{named(names[i])} was clean in {_trials(line[i].full)} although "
                f"{named(names[interval.high])} shows the fault: luck, or a second boundary"
            )
    return notes + others(names, line)


def others(names: Sequence[str], line: Sequence[Tally]) -> list[str]:
    """What was seen and does not count: other faults, and clean trials that were too short."""
    notes = []
    for name, one in zip(names, line, strict=True):
        for signature, times in sorted(Counter(one.others).items()):
            notes.append(
                f"another fault in {named(name)}: {printable(signature)} ({_trials(times)})"
            )
        if one.short:
            notes.append(
                f"{_trials(one.short)} of {named(name)} ended clean before the fault is known to "
                "come, and count for nothing"
            )
    return notes


def _trials(number: int) -> str:
    return "1 trial" if number == 1 else f"{number} trials"
