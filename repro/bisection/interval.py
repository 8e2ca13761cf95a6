"""Where the boundary can be: between the latest good build and the earliest bad one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import Blocks
from .ends import Ends, repeats
from .posterior import clean_chance
from .question import Options
from .tally import Tally

# A clean build right of a bad one is a second boundary where chance explains it less than this,
# as a share of the doubt that the search may leave.
LUCK = 0.1


@dataclass(frozen=True, slots=True)
class Interval:
    """low: taken for good; high: the earliest build seen bad after it. cells: position of the last
    build of each cell: low, every build between that may be tried, high. share: prior of low being
    bad, in builds. last: the bad end. turned: the ends were the other way round. flips: (bad, good)
    positions where the fault went away again, the earlier first. unsettled: a build right of a bad
    one that was clean, but not often enough to be called good.
    """

    low: int
    high: int
    cells: tuple[int, ...]
    share: float
    last: int
    turned: bool
    flips: tuple[tuple[int, int], ...] = ()
    unsettled: int | None = None


def interval(
    line: Sequence[Tally], found: Blocks, ends: Ends, steady: bool, options: Options
) -> Interval:
    """The interval between the ends.

    Where verdicts are not monotone it lies after the last build that is good for sure: there the
    fault came that the bad end has.
    """
    low, share = ends.low, ends.share
    flips = []
    unsettled = None
    for position in range(ends.low + 1, ends.high):
        one = line[position]
        before = [i for i in range(low, position) if line[i].bad]
        if not before or one.bad or not (one.sure or one.full):
            continue
        if _good(one, line[ends.high], steady, options):
            flips.append((before[-1], position))
            low, share = position, 1.0
        elif steady and not one.worn:
            unsettled = position
    high = next(i for i in range(low + 1, ends.high + 1) if line[i].bad)
    cells = (low, *(i for i in range(low + 1, high) if found.open(i)), high)
    return Interval(low, high, cells, share, ends.high, ends.turned, tuple(flips), unsettled)


def _good(one: Tally, bad: Tally, steady: bool, options: Options) -> bool:
    """Whether a build with clean trials only is good, by itself."""
    if one.sure or (steady and one.full >= repeats(options)):
        return True
    return not steady and clean_chance(bad, one.cleans, options.flaky) < LUCK * (
        1 - options.confidence
    )
