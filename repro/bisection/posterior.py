"""Where a fault that shows only sometimes began: probabilities from its trials.

The model is one-sided. A good build never shows the fault; a bad one shows it with probability p in
a trial of full exposure, trials being independent and p the same for every bad build. So a fault at
build i proves that the first bad build is i or earlier, and a clean trial only weighs, by
1 - p * weight. p is not known: it is kept as a distribution beside that of the boundary, on a grid,
with an atom at p = 1 for faults that always show.

Prior of p: `flaky` spread evenly over (0, 1), the rest at 1. Prior of the boundary: every build
alike. Sums run along the line once, so a step costs O(builds x grid).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .tally import Tally

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

GRID = 40
# Trials in a row that a choice thinks of; of a longer row only the first is run, then it is redone.
ROWS = (1, 2, 4, 8, 16, 32)


def rates() -> Array:
    """The values of p, float64 [GRID + 1]: denser near 0, the last one is 1."""
    import numpy as np

    x = (np.arange(GRID) + 0.5) / GRID
    return np.append(x * x, 1.0)


def prior(flaky: float) -> Array:
    """Prior of each value of p, float64 [GRID + 1], sum 1. flaky: share of those below 1."""
    import numpy as np

    x = (np.arange(GRID) + 0.5) / GRID
    return np.append(flaky * x / x.sum(), 1.0 - flaky)


def if_bad(one: Tally, p: Array) -> Array:
    """Logarithm of the probability of a build's trials if it is bad, by p; -inf if impossible."""
    import numpy as np

    if one.sure:
        return np.full_like(p, -np.inf)
    with np.errstate(divide="ignore"):
        found = one.bads * np.log(p)
        for weight in sorted(set(one.cleans)):
            found = found + one.cleans.count(weight) * np.log1p(-p * weight)
    return found


def joint(line: Sequence[Tally], ends: Sequence[int], low_share: float, flaky: float) -> Array:
    """Probabilities of (boundary, p), float64 [cells, GRID + 1], sum 1.

    line: tallies of builds from the good end to the bad end. ends: position of the last build of
    each cell, ascending: the good end, every build that can be tried, the first that was seen bad.
    Boundaries within a cell cannot be told apart. Prior of the first cell: `low_share` builds.
    ValueError where the trials contradict every boundary.
    """
    import numpy as np

    p = rates()
    seen = np.zeros((len(line) + 1, len(p)))
    for i in range(len(line) - 1, -1, -1):
        one = line[i]
        seen[i] = seen[i + 1] + (if_bad(one, p) if one.tested else 0.0)
    starts = [0, *(end + 1 for end in ends[:-1])]
    sizes = np.array(
        [end - start + 1.0 for start, end in zip(starts, ends, strict=True)], dtype=np.float64
    )
    sizes[0] = low_share
    # untestable builds of a cell say nothing, so its builds share what its last one says
    with np.errstate(divide="ignore"):
        weights = seen[list(ends)] + np.log(sizes)[:, None] + np.log(prior(flaky))[None, :]
    top = weights.max()
    if not np.isfinite(top):
        raise ValueError("the trials contradict every boundary")
    found = np.exp(weights - top)
    result: Array = found / found.sum()
    return result


def gains(table: Array, row: int) -> tuple[Array, Array]:
    """What a row of trials at the end of each cell tells of the boundary: (nats, trials).

    table: as `joint`. The row stops at its first fault, so fewer trials than `row` are expected.
    float64 [cells - 1] each: the end of the last cell was seen bad.
    """
    import numpy as np

    p = rates()
    never = (1.0 - p) ** row  # of a bad build
    weight = table.sum(axis=1)
    clean = table @ never
    seen = weight - clean
    seen_sum, clean_sum = np.cumsum(seen)[:-1], np.cumsum(clean)[:-1]
    rest = np.maximum(weight.sum() - np.cumsum(weight)[:-1], 0.0)
    total = clean_sum + rest
    terms = _xlogx(weight)
    before = terms.sum()
    after = (
        np.cumsum(_xlogx(seen))[:-1]
        - _xlogx(seen_sum)
        + np.cumsum(_xlogx(clean))[:-1]
        + (before - np.cumsum(terms)[:-1])
        - _xlogx(total)
    )
    until = np.cumsum(table @ ((1.0 - never) / p))[:-1]
    return np.maximum(after - (before - _xlogx(weight.sum())), 0.0), until + row * rest


def split(table: Array, cell: int) -> tuple[Array, Array]:
    """The table after a fault, and after a clean trial, at the end of a cell; their sum is it."""
    p = rates()
    seen = table * p
    seen[cell + 1 :] = 0.0
    return seen, table - seen


def _xlogx(x: Array) -> Array:
    import numpy as np

    # what rounding left below 0 is 0
    x = np.maximum(x, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)


def rate(table: Array) -> float:
    """Expected p."""
    return float((table.sum(axis=0) * rates()).sum())


def clean_chance(bad: Tally, cleans: Sequence[float], flaky: float) -> float:
    """Probability that a bad build stays clean in trials of these weights; p as `bad` showed it."""
    import numpy as np

    p = rates()
    with np.errstate(divide="ignore"):
        seen = if_bad(bad, p) + np.log(prior(flaky))
    seen = np.exp(seen - seen.max())
    share = np.ones_like(p)
    for weight in cleans:
        share = share * (1.0 - p * weight)
    return float((seen * share).sum() / seen.sum())
