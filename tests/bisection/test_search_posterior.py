"""The probabilities of a search, against sums over everything that could be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.bisection.choose import cuts, shares, telling
from specrepro.repro.bisection.costs import Costs, measured
from specrepro.repro.bisection.posterior import (
    GRID,
    ROWS,
    clean_chance,
    gains,
    joint,
    prior,
    rate,
    rates,
    split,
)
from specrepro.repro.bisection.tally import Horizon, Tally, horizon
from specrepro.repro.bisection.verdicts import (
    Bad,
    Exposure,
    Good,
    Marked,
    Observation,
    Opened,
    Untestable,
)

weights = st.sampled_from([1.0, 0.5, 0.25])
tested = st.builds(
    lambda bads, cleans: Tally(len(cleans) + bads, bads, tuple(cleans)),
    st.integers(0, 3),
    st.lists(weights, max_size=3),
)


@st.composite
def lines(draw: st.DrawFn) -> tuple[list[Tally], list[int]]:
    """Tallies from a good end to a bad one, and the ends of the cells."""
    length = draw(st.integers(2, 7))
    line = [draw(tested) for _ in range(length)]
    first = next((i for i, one in enumerate(line) if one.bad and i), length - 1)
    line[0] = Tally(cleans=line[0].cleans)
    line[first] = Tally(bads=max(line[first].bads, 1), cleans=line[first].cleans)
    shut = draw(st.sets(st.integers(1, first - 1), max_size=2)) if first > 1 else set()
    for i in shut:
        line[i] = Tally()
    return line, [i for i in range(first + 1) if i not in shut]


def chance(line: Sequence[Tally], first_bad: int, p: float) -> float:
    """Probability of all trials, build by build and trial by trial."""
    found = 1.0
    for i, one in enumerate(line):
        if i < first_bad:
            found *= not one.bad
        else:
            found *= p**one.bads
            for weight in one.cleans:
                found *= 1 - p * weight
    return found


@given(given=lines(), low=st.floats(0.5, 9), flaky=st.floats(0.01, 0.99))
@settings(deadline=None)
def test_the_posterior_is_that_of_bayes(
    given: tuple[list[Tally], list[int]], low: float, flaky: float
) -> None:
    line, ends = given
    expected = np.zeros((len(ends), GRID + 1))
    for first_bad in range(ends[-1] + 1):
        cell = next(c for c, end in enumerate(ends) if first_bad <= end)
        for k, (p, share) in enumerate(zip(rates(), prior(flaky), strict=True)):
            before = low if first_bad == 0 else 1.0
            expected[cell, k] += before * share * chance(line, first_bad, float(p))
    table = joint(line, ends, low, flaky)
    assert table.sum() == pytest.approx(1)
    np.testing.assert_allclose(table, expected / expected.sum(), rtol=1e-9, atol=1e-12)


def information(table: Any, cell: int, row: int) -> tuple[float, float]:
    """Mutual information of the boundary and a row of trials at the end of a cell, and how many
    trials it takes: the sum over boundaries, rates and numbers of clean trials before a fault.
    """
    outcomes = np.zeros((len(table), 2))
    trials = 0.0
    for c, (k, p) in product(range(len(table)), enumerate(rates())):
        weight = float(table[c, k])
        if c > cell:
            outcomes[c, 0] += weight
            trials += weight * row
            continue
        for clean in range(row):
            share = weight * (1 - p) ** clean * p
            outcomes[c, 1] += share
            trials += share * (clean + 1)
        outcomes[c, 0] += weight * (1 - p) ** row
        trials += weight * (1 - p) ** row * row
    found = 0.0
    for c, way in product(range(len(table)), range(2)):
        both = outcomes[c, way]
        if both > 0:
            found += both * math.log(both / (outcomes[c].sum() * outcomes[:, way].sum()))
    return found, trials


@given(given=lines(), row=st.sampled_from(ROWS))
@settings(deadline=None, max_examples=40)
def test_what_a_row_of_trials_tells_is_its_mutual_information_with_the_boundary(
    given: tuple[list[Tally], list[int]], row: int
) -> None:
    table = joint(*given, 1.0, 0.5)
    nats, trials = gains(table, row)
    for cell in range(len(table) - 1):
        expected = information(table, cell, row)
        assert (nats[cell], trials[cell]) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(given=lines(), data=st.data())
@settings(deadline=None, max_examples=40)
def test_a_trial_splits_the_table_into_what_follows_each_outcome(
    given: tuple[list[Tally], list[int]], data: st.DataObject
) -> None:
    line, ends = given
    table = joint(line, ends, 1.0, 0.5)
    cell = data.draw(st.integers(0, len(table) - 2))
    seen, clean = split(table, cell)
    np.testing.assert_allclose(seen + clean, table, atol=1e-15)
    at = ends[cell]
    once = [*line]
    once[at] = Tally(bads=line[at].bads, cleans=(*line[at].cleans, 1.0))
    np.testing.assert_allclose(joint(once, ends, 1.0, 0.5), clean / clean.sum(), atol=1e-9)


def test_the_prior_is_even_below_one_with_the_rest_at_one() -> None:
    share = prior(0.3)
    assert share.sum() == pytest.approx(1)
    assert share[-1] == pytest.approx(0.7)
    # moments of the even distribution on (0, 1), and those of a Beta after 2 faults of 3 trials
    p = rates()[:-1]
    even = share[:-1] / 0.3
    assert (even * p).sum() == pytest.approx(1 / 2, abs=2e-3)
    assert (even * p**2).sum() == pytest.approx(1 / 3, abs=2e-3)
    after = even * p**2 * (1 - p)
    assert (after * p).sum() / after.sum() == pytest.approx(3 / 5, abs=2e-3)


def test_clean_trials_of_a_bad_build_are_as_likely_as_its_faults_say() -> None:
    always, mixed = Tally(bads=3), Tally(bads=2, cleans=(1.0, 1.0))
    assert clean_chance(always, [], 0.5) == pytest.approx(1)
    # even prior, 3 of 3: Beta(4, 1), which expects 1 / 5 clean; the atom at 1 weighs 4 to 1
    assert clean_chance(always, [1.0], 0.5) == pytest.approx(0.2 * 0.2, abs=2e-3)
    # Beta(3, 3)
    assert clean_chance(mixed, [1.0], 0.5) == pytest.approx(0.5, abs=2e-3)
    assert clean_chance(mixed, [1.0, 1.0], 0.5) == pytest.approx(2 / 7, abs=2e-3)


def test_the_expected_rate_is_that_of_the_trials() -> None:
    line = [Tally(cleans=(1.0,) * 50), Tally(bads=30, cleans=(1.0,) * 70)]
    assert rate(joint(line, [0, 1], 1.0, 0.5)) == pytest.approx(31 / 102, abs=5e-3)


def test_a_build_said_to_be_good_leaves_nothing_at_or_before_it() -> None:
    line = [Tally(), Tally(marked=Marked.GOOD), Tally(), Tally(bads=1)]
    assert joint(line, [0, 1, 2, 3], 1.0, 0.5).sum(axis=1).tolist() == pytest.approx(
        [0, 0, 0.5, 0.5]
    )
    assert shares(line, [0, 1, 2, 3], 1.0) == [0, 0, 0.5, 0.5]


def test_what_contradicts_every_boundary_is_said() -> None:
    with pytest.raises(ValueError, match="contradict"):
        joint([Tally(), Tally(marked=Marked.GOOD)], [0, 1], 1.0, 0.5)


@given(given=lines(), low=st.floats(0.5, 9))
@settings(deadline=None)
def test_shares_of_a_fault_that_always_shows_are_the_posterior_at_rate_one(
    given: tuple[list[Tally], list[int]], low: float
) -> None:
    line, ends = given
    line = line[: ends[-1] + 1]
    line[-1] = Tally(bads=1)
    table = joint(line, ends, low, 0.5)[:, -1]
    assert shares(line, ends, low) == pytest.approx((table / table.sum()).tolist())


@given(cells=st.integers(2, 200), count=st.integers(1, 6))
def test_cuts_part_equal_cells_evenly(cells: int, count: int) -> None:
    mass = [0.0] + [1 / cells] * cells
    picked = sorted(cuts(mass, lambda _: 0.0, count))
    assert len(set(picked)) == len(picked) == min(count, cells - 1)
    parts = [b - a for a, b in zip([0, *picked], [*picked, cells], strict=True)]
    assert sum(parts) == cells
    if count == 1 or cells >= 4 * count:
        assert max(parts) - min(parts) <= 2 - (count == 1)


def test_a_cut_moves_away_from_builds_that_may_not_be_testable() -> None:
    mass = [0.0] + [1 / 16] * 16
    assert cuts(mass, lambda _: 0.0, 1) == [8]
    (moved,) = cuts(mass, lambda cell: 0.9 if 5 < cell < 11 else 0.0, 1)
    assert moved in (5, 11)


def test_nothing_is_cut_where_one_cell_has_everything() -> None:
    assert cuts([0.0, 0.0, 1.0], lambda _: 0.0, 3) == []


def test_a_change_of_build_has_to_pay_for_itself() -> None:
    line = [Tally(cleans=(1.0,) * 9), *[Tally()] * 14, Tally(bads=3, cleans=(1.0,) * 7)]
    line[6] = Tally(cleans=(1.0, 1.0))
    table = joint(line, list(range(16)), 1.0, 0.5)
    here = [0.0 if cell == 6 else 1.0 for cell in range(16)]
    free = telling(table, lambda _: 0.0, lambda _: 0.0, 60.0, 1)
    dear = telling(table, lambda _: 0.0, lambda cell: 3600 * here[cell], 60.0, 1)
    assert dear == [6]
    assert free != [6]


def test_trials_at_once_are_spread_over_builds() -> None:
    line = [Tally(cleans=(1.0,) * 9), *[Tally()] * 30, Tally(bads=5, cleans=(1.0,))]
    table = joint(line, list(range(32)), 1.0, 0.5)
    picked = telling(table, lambda _: 0.0, lambda _: 60.0, 60.0, 3)
    assert len(set(picked)) == 3
    assert min(picked) < 12 < 18 < max(picked)


def test_clean_trials_weigh_by_the_share_of_faults_that_had_come() -> None:
    seen = [
        Observation("a", n, Bad("Xid 31", Exposure(tokens=tokens, seconds=9.0)), 1.0)
        for n, tokens in enumerate((3_000, 1_000, 2_000), start=1)
    ]
    reach = horizon([*seen, Observation("a", 9, Good(Exposure(tokens=99_999)), 1.0)])
    assert reach == Horizon("tokens", (1_000, 2_000, 3_000))
    for tokens, weight in ((999, 0), (1_000, 0.25), (2_500, 0.5), (3_000, 1), (50_000, 1)):
        assert reach.weight(Exposure(tokens=tokens)) == weight
    assert reach.weight(Exposure(seconds=50.0)) == 0  # not known to have come so far


def test_the_unit_of_a_horizon_is_the_one_that_most_faults_have() -> None:
    some = Observation("a", 1, Bad("Xid 31", Exposure(requests=4, seconds=1.0)), 1.0)
    most = Observation("a", 2, Bad("Xid 31", Exposure(tokens=9, requests=5)), 1.0)
    assert horizon([some, most]) == Horizon("requests", (4, 5))
    assert horizon([Observation("a", 1, Bad("Xid 31"), 1.0)]).weight(Exposure()) == 1


def test_costs_are_what_trials_and_setups_took() -> None:
    events = [
        Opened(),
        Observation("a", 1, Good(), 10.0, setup=100.0),
        Observation("a", 2, Bad("Xid 31"), 20.0),
        Observation("b", 1, Good(), 30.0, setup=300.0),
        Observation("a", 3, Good(), 20.0, setup=5.0),
        Observation("c", 1, Untestable("no wheel", "wheel"), 9999.0),
    ]
    costs = measured(events, Costs())
    assert costs == Costs(trial=20.0, load=5.0, install=200.0)
    assert costs.of("a", {"a"}, {"a", "b"}) == 0
    assert costs.of("b", {"a"}, {"a", "b"}) == 5
    assert costs.of("z", {"a"}, {"a", "b"}) == 200
    assert measured([], Costs()) == Costs()
