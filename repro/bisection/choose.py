"""Which builds to try next: the most that can be learnt in a second. Pure.

A fault that shows every time splits the line: with N trials at once into N + 1 parts. One that
shows only sometimes is searched by expected information: of each build that can be tried, and of
rows of 1 to 32 trials on it, the nats about the boundary over the seconds they take. A change of
build is part of those seconds, so that it has to pay for itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from .posterior import ROWS, gains, split
from .tally import Tally

if TYPE_CHECKING:
    from .posterior import Array

# Outcomes of trials of one batch that are thought through; the least likely beyond are left out.
BRANCHES = 16
# Worth of a build that is ready beside what it tells in a second: one that is left in doubt often
# has to be taken up again, which a look one step ahead does not see. Measured: 1 to 2 need the same
# seconds within 2 %, and 1.5 an eighth fewer changes of build than 1.
STAY = 1.5

Doubt = Callable[[int], float]  # cell → probability that its last build cannot be tested
Setup = Callable[[int], float]  # cell → seconds until a trial of its last build can begin


def shares(line: Sequence[Tally], cells: Sequence[int], low_share: float) -> list[float]:
    """Probability of each cell to hold the boundary if every trial of a bad build shows the fault.

    Sum 1; all of it in the last cell where the trials contradict every boundary.
    """
    starts = [cells[0], *(cell + 1 for cell in cells[:-1])]
    sizes = [float(end - start + 1) for start, end in zip(starts, cells, strict=True)]
    sizes[0] = low_share
    missed = 1.0
    for at in range(len(cells) - 2, -1, -1):
        one = line[cells[at]]
        missed *= 0.0 if one.sure else math.prod(1 - weight for weight in one.cleans)
        sizes[at] *= missed
    total = sum(sizes)
    return [size / total for size in sizes]


def cuts(mass: Sequence[float], doubt: Doubt, count: int) -> list[int]:
    """Cells at whose ends `count` trials split the mass most evenly; [] if nothing is left to.

    Each cut has a place of its own, at k / (count + 1) of the mass, and moves away from builds that
    may not be testable.
    """
    below = list(accumulate(mass))[:-1]
    picked: list[int] = []
    for k in range(1, count + 1):
        left, right = (k - 1) / (count + 1), (k + 1) / (count + 1)
        scores = {
            cell: _entropy((share - left) / (right - left)) * (1 - doubt(cell))
            for cell, share in enumerate(below)
            if cell not in picked and left < share < right and 0 < share < 1
        }
        best = max(scores, key=lambda cell: (scores[cell], -cell), default=None)
        if best is not None and scores[best] > 0:
            picked.append(best)
    if not picked:
        rest = [c for c, share in enumerate(below) if 0 < share < 1 and doubt(c) < 1]
        picked = sorted(rest, key=lambda cell: (abs(below[cell] - 0.5), cell))[:1]
    return picked


def telling(table: Array, doubt: Doubt, setup: Setup, trial: float, count: int) -> list[int]:
    """Cells at whose ends `count` trials at once tell most in a second; one may come repeatedly.

    [] where nothing can be learnt. table: as `posterior.joint`. trial: seconds of one.
    """
    import numpy as np

    cells = range(len(table) - 1)
    prepare = np.array([setup(cell) for cell in cells])
    worth = np.array([1 - doubt(cell) for cell in cells]) * np.where(prepare > 0, 1.0, STAY)
    branches = [table]
    picked: list[int] = []
    for _ in range(count):
        best, score = -1, 0.0
        for row in ROWS:
            found = [gains(branch, row) for branch in branches]
            nats = sum(nat for nat, _ in found)
            trials = sum(until for _, until in found)
            scores = nats * worth / (prepare + trial * trials)
            at = int(np.argmax(scores))
            if scores[at] > score:
                best, score = at, float(scores[at])
        if best < 0:
            break
        picked.append(best)
        # another trial of the same build at the same time has to prepare it too
        branches = [part for branch in branches for part in split(branch, best) if part.any()]
        branches = sorted(branches, key=lambda part: -float(part.sum()))[:BRANCHES]
    return picked


def _entropy(share: float) -> float:
    if not 0 < share < 1:
        return 0.0
    return -share * math.log2(share) - (1 - share) * math.log2(1 - share)
