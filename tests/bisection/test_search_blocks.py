"""Blocks of untestable builds by themselves, and what a search refuses to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from specrepro.repro.bisection.blocks import blocks, doubt, probes
from specrepro.repro.bisection.question import Options
from specrepro.repro.bisection.search import Search
from specrepro.repro.bisection.tally import NEVER, Tally
from specrepro.repro.bisection.verdicts import Untestable
from specrepro.repro.errors import UsageError

TORCH = Tally(trials=1, untestable=Untestable("", "torch"))
CLEAN = Tally(trials=1, cleans=(1.0,))


def test_only_builds_between_two_of_the_same_reason_are_presumed() -> None:
    refused = {2: "torch", 5: "torch", 8: "wheel", 12: "torch", 15: "torch"}
    line = [
        Tally(untestable=Untestable("", refused[i])) if i in refused else NEVER for i in range(20)
    ]
    line[14] = Tally(trials=1, bads=1)
    found = blocks(line, frozenset({4}))
    assert found.presumed == {3}
    assert found.tried == (2, 5, 8, 12, 14, 15)
    assert [i for i in range(20) if found.open(i)] == [
        0,
        1,
        6,
        7,
        9,
        10,
        11,
        13,
        14,
        16,
        17,
        18,
        19,
    ]


def test_the_doubt_falls_in_proportion_from_an_untestable_to_a_testable_build() -> None:
    line = [CLEAN, *[NEVER] * 9, TORCH]
    found = blocks(line, frozenset())
    doubts = [doubt(found, i) for i in range(1, 10)]
    steps = [later - earlier for earlier, later in pairwise(doubts)]
    assert steps == pytest.approx([0.08] * 8)  # of 0.8 over 10 builds
    assert doubt(blocks([CLEAN, NEVER, CLEAN], frozenset()), 1) == 0


def test_probes_halve_the_widest_gap_until_enough_have_missed() -> None:
    line = [CLEAN, TORCH, *[NEVER] * 30, TORCH, CLEAN]
    tried: list[int] = []
    while found := probes(blocks(line, frozenset()), 0, 33, 1):
        tried += found
        line[found[0]] = TORCH
    assert tried[:3] == [17, 9, 25]
    assert len(tried) == 5  # floor(log2 30) + 1
    assert probes(blocks(line, frozenset()), 0, 33, 9) == []


def test_the_names_of_a_search_have_to_be_right() -> None:
    with pytest.raises(UsageError, match="twice"):
        Search(["a", "a"])
    with pytest.raises(UsageError, match="no candidate"):
        Search(["a", "b"], {"c": "gone"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"confidence": 1.0},
        {"confidence": 0.2},
        {"flaky": 0.0},
        {"repeats": 0},
        {"jobs": 0},
        {"budget_seconds": 0.0},
        {"budget_trials": -1},
        {"budget_seconds": float("inf")},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError):
        Options(**wrong)
