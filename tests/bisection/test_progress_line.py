"""The line of a trial: what it took, what is left, and how long that may take."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.bisection.candidates import Candidate, Line
from specrepro.repro.bisection.costs import READING, Costs
from specrepro.repro.bisection.progress_line import narrowed, varied
from specrepro.repro.bisection.question import Options
from specrepro.repro.bisection.search import Search
from specrepro.repro.bisection.session import Quest
from specrepro.repro.bisection.verdicts import Bad, Good, Observation, Untestable

BUILDS = tuple(f"0.{number}.0" for number in range(1, 9))


def line(options: Options, *seen: Observation, injected: str = "") -> str:
    quest = Quest("release", Line(tuple(map(Candidate, BUILDS))), options)
    return narrowed(quest, Search(BUILDS, {}, seen, options), seen[-1], injected)


def test_a_build_that_was_made_for_its_trial_is_priced_with_what_that_took() -> None:
    options = Options(deterministic=True, costs=Costs(trial=1.0, load=5.0, install=1.0))
    bad = Observation(BUILDS[-1], 1, Bad("gate"), 20.0, "", 200.0)
    good = Observation(BUILDS[0], 1, Good(), 20.0, "", 100.0)
    # three halvings of 7 builds: 20 s and the median of 200 and 100 each; then the bad one again,
    # which is there: 20 s and the 5 s that are assumed
    assert line(options, bad, good) == (
        "0.1.0         good   20.0 s and 100.0 s for its environment"
        f"   · 7 left, 4 trials or so, {3 * 170 + 25} s"
    )
    dear = Observation(BUILDS[0], 1, Good(), 20.0, "", 400.0)
    # 3 × 320 + 25 are 985 s
    assert line(options, bad, dear).endswith("7 left, 4 trials or so, 16 min")
    # two at once cut 7 builds into three parts twice
    together = Options(deterministic=True, jobs=2, costs=options.costs)
    assert line(together, bad, good).endswith(f"7 left, 5 trials or so, {50 + 2 * 150 + 5} s")


@pytest.mark.parametrize("setup", [0.0, 0.4])
def test_where_nothing_is_installed_a_trial_is_all_that_it_takes(setup: float) -> None:
    options = Options(exact=True, costs=READING)
    ends: list[Any] = [
        Observation(BUILDS[-1], 1, Bad("gate"), 2.0),
        Observation(BUILDS[0], 1, Good(), 2.0, "", setup),
    ]
    left = 3 * 2.0 + 3 * setup
    assert line(options, *ends) == (
        f"0.1.0         good   2.0 s   · 7 left, 3 trials or so, {left:.0f} s"
    )


def test_before_the_ends_are_known_and_after_the_last_trial_nothing_is_left_to_tell() -> None:
    options = Options(exact=True, costs=READING)
    ends = [Observation(BUILDS[-1], 1, Bad("gate"), 2.0), Observation(BUILDS[0], 1, Good(), 2.0)]
    assert line(options, ends[0]) == "0.8.0         bad   gate   2.0 s"
    last = Observation(BUILDS[-2], 1, Good(), 2.0)
    assert line(options, *ends, last, injected="fix") == (
        "0.7.0         good   with fix injected   2.0 s"
    )


def test_a_trial_of_a_variation_is_told_with_its_reason_cut_where_that_is_long() -> None:
    failed = Observation("0.1.0.runner-v2", 1, Untestable("no Triton " * 20, "no Triton"), 9.0)
    told = varied(failed, "0.1.0 with runner v2")
    assert told.startswith("0.1.0 with runner v2   untestable   no Triton no Triton")
    assert told.endswith("no Triton no Tri…   9.0 s")
    good = Observation("0.1.0.packages-0", 1, Good(), 20.0, "", 100.0)
    assert varied(good, "0.1.0 with rich 14", "target_length") == (
        "0.1.0 with rich 14   good   with target_length injected   20.0 s"
        " and 100.0 s for its environment"
    )
