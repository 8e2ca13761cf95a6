"""Our exact tests against scipy's."""

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.scenarios.significance import binomial_p, chi_square_p, chi_square_tail


@given(st.floats(0.01, 200), st.integers(1, 40))
def test_the_chi_square_tail_is_scipys(x: float, freedom: int) -> None:
    assert chi_square_tail(x, freedom) == pytest.approx(
        float(scipy.stats.chi2.sf(x, freedom)), rel=1e-9, abs=1e-300
    )


@given(st.lists(st.integers(0, 60), min_size=2, max_size=8).filter(lambda n: sum(n) > 0))
def test_the_chi_square_test_is_scipys(counts: list[int]) -> None:
    weights = [i + 1 for i in range(len(counts))]
    shares = [w / sum(weights) for w in weights]
    expected = [share * sum(counts) for share in shares]
    theirs = float(scipy.stats.chisquare(counts, expected, sum_check=False).pvalue)
    assert chi_square_p(counts, shares) == pytest.approx(theirs, rel=1e-8, abs=1e-300)


@given(st.integers(1, 300), st.floats(0.01, 0.99), st.data())
def test_the_binomial_test_is_scipys(trials: int, probability: float, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    theirs = float(scipy.stats.binomtest(successes, trials, probability).pvalue)
    assert binomial_p(successes, trials, probability) == pytest.approx(theirs, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("probability", "p"), [(0.0, 0.0), (1.0, 1.0)])
def test_a_certain_outcome_is_certain(probability: float, p: float) -> None:
    assert binomial_p(5, 5, probability) == p
