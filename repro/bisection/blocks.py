"""Builds that cannot be tested come in blocks. Pure.

What makes a build untestable (a renamed wheel, a raised torch, a removed flag) mostly lasts for
many builds in a row. So builds between two that are untestable *for the same reason*, with no
testable one between, are presumed untestable and not tried: the hull rule. When nothing else is
left to try, the block is probed by halving its widest gap, until one of it is testable after all or
log2(n) + 1 trials within it, the search for its edges included, have missed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .tally import Tally

# How far blocks are believed in: the rest is the share of untestable builds among those tried.
BLOCKS = 0.8
# A gap of more than this part of a block is probed, however many trials have missed.
WIDE = 4


@dataclass(frozen=True, slots=True)
class Blocks:
    """A line of builds, as far as it can be tested. Positions count from 0.

    tried: were tested or are untestable, ascending; refused: the latter, position → fingerprint.
    presumed: lie between such. absent: known to be unavailable before the search.
    """

    length: int
    tried: tuple[int, ...]
    refused: Mapping[int, str]
    presumed: frozenset[int]
    absent: frozenset[int]

    def open(self, position: int) -> bool:
        """Whether a build may be tried."""
        return not (
            position in self.refused or position in self.presumed or position in self.absent
        )


def blocks(line: Sequence[Tally], absent: frozenset[int]) -> Blocks:
    """The blocks of a line."""
    refused = {
        i: one.untestable.fingerprint
        for i, one in enumerate(line)
        if one.untestable is not None and i not in absent
    }
    tried = tuple(i for i, one in enumerate(line) if one.tested or i in refused)
    presumed: set[int] = set()
    for left, right in pairwise(tried):
        if left in refused and refused[left] == refused.get(right):
            presumed.update(range(left + 1, right))
    return Blocks(len(line), tried, refused, frozenset(presumed - absent), absent)


def doubt(found: Blocks, position: int) -> float:
    """Probability that a build cannot be tested, 0 to 1.

    Between an untestable and a testable build the edge of the block is anywhere, alike: the doubt
    falls from 1 to 0 in proportion.
    """
    known = found.tried
    at = bisect_left(known, position)
    left = known[at - 1] if at else -1
    right = known[at] if at < len(known) else found.length
    share = len(found.refused) / len(known) if known else 0.0
    near = 0.0
    if left in found.refused:
        near = max(near, (right - position) / (right - left))
    if right in found.refused:
        near = max(near, (position - left) / (right - left))
    return BLOCKS * near + (1 - BLOCKS) * share


def probes(found: Blocks, low: int, high: int, count: int) -> list[int]:
    """Presumed builds between two positions to try after all, the most telling first.

    [] when there are none, or when enough of them have missed.
    """
    inside = sorted(i for i in found.presumed if low < i < high)
    refused = [i for i in found.refused if low < i < high]
    missed = max(len(refused) - 2, 0)  # the edges tell where the block is, not what is in it
    size = len(inside) + missed
    allowed = size.bit_length() - missed
    picked: list[int] = []
    while len(picked) < min(count, len(inside)):
        cuts = sorted({low, high, *picked, *refused})
        gaps = ([i for i in inside if left < i < right] for left, right in pairwise(cuts))
        gap = max(gaps, key=len)
        if not gap or (len(picked) >= allowed and len(gap) * WIDE <= size):
            break
        picked.append(gap[len(gap) // 2])
    return picked
