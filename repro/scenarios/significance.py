"""Exact tests of counts against stated probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence


def chi_square_p(counts: Sequence[int], probabilities: Sequence[float]) -> float:
    """P(chi-square at least as large) of category counts under `probabilities` (sum 1, none 0)."""
    total = sum(counts)
    statistic = sum(
        (count - total * p) ** 2 / (total * p)
        for count, p in zip(counts, probabilities, strict=True)
    )
    return chi_square_tail(statistic, len(counts) - 1)


def chi_square_tail(x: float, freedom: int) -> float:
    """Upper tail of the chi-square distribution, by the recurrence in steps of two degrees."""
    half = x / 2
    if freedom % 2:
        tail, term, n = math.erfc(math.sqrt(half)), 1.0, 1
        term = math.exp(-half) * math.sqrt(half) / math.gamma(1.5)
    else:
        tail, term, n = math.exp(-half), math.exp(-half) * half, 2
    while n < freedom:
        tail += term
        n += 2
        term *= half / (n / 2)
    return min(1.0, tail)


def binomial_p(successes: int, trials: int, probability: float) -> float:
    """Exact two-sided test: the mass of all outcomes no likelier than the observed one."""

    def log_mass(k: int) -> float:
        ways = math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
        return ways + k * math.log(probability) + (trials - k) * math.log1p(-probability)

    if probability in (0.0, 1.0):
        return 1.0 if successes == trials * probability else 0.0
    seen = log_mass(successes) + 1e-7
    masses = (log_mass(k) for k in range(trials + 1))
    return min(1.0, math.fsum(math.exp(mass) for mass in masses if mass <= seen))
