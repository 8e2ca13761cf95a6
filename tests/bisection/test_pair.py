"""Which of the defaults that moved at a boundary are those of the engine that was tried."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.bisection.candidates import Candidate, Line
from specrepro.repro.bisection.pair import pair
from specrepro.repro.bisection.question import Ending, Find, Kind, Result
from specrepro.repro.bisection.record import Stage
from specrepro.repro.bisection.verdicts import Bad, Observation


def stage(find: Find = Find.FIRST_BAD, **settings: str) -> Stage:
    """A boundary whose bad build came up in these settings."""
    line = Line((Candidate("0.1.0"), Candidate("0.2.0")))
    bad = "0.2.0" if find is Find.FIRST_BAD else "0.1.0"
    rows = {"log": {"exposure": [{"defect": "x", "settings": settings}]}}
    result = Result(Kind(str(find)), Ending.LOCATED, "0.2.0", "0.1.0", 1.0)
    return Stage("release", line, find, [Observation(bad, 1, Bad("x"), 1.0, "log")], rows, result)


def test_the_bad_build_is_on_the_side_that_the_search_says() -> None:
    for find, bad in ((Find.FIRST_BAD, "0.2.0"), (Find.FIRST_GOOD, "0.1.0")):
        both = pair(stage(find, runner="v1"), [], {})
        assert both is not None
        assert (both.bad, both.other(both.good)) == (bad, bad)
        assert both.settings == {"runner": "v1"}


@pytest.mark.parametrize(
    ("of", "settings", "fixed", "concerned"),
    [
        ("v1 pp1", {"runner": "v1"}, {}, True),
        ("v2 pp1", {"runner": "v1"}, {}, False),
        # one stage, unless more were asked for; a table knows one, and more than one
        ("v1 pp2", {"runner": "v1"}, {}, False),
        ("v1 pp2", {"runner": "v1"}, {"pp": 3}, True),
        ("v1 pp1 align", {"prefix_caching": "off"}, {}, False),
        ("v1 pp1 align", {"prefix_caching": "on"}, {}, True),
        ("hybrid", {}, {}, True),
        ("hybrid", {}, {"model": "dense"}, False),
    ],
)
def test_a_default_of_other_settings_did_not_move_for_the_engine_that_was_tried(
    of: str, settings: dict[str, str], fixed: dict[str, Any], concerned: bool
) -> None:
    moved = [{"setting": "async", "of": of, "before": "on", "after": "off"}]
    both = pair(stage(**settings), moved, fixed)
    assert both is not None
    assert both.moved == ({"async"} if concerned else set())
