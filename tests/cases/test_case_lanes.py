"""Which lanes on a GPU a shipped case lists: those that can show something of it, and no other."""

from __future__ import annotations

import pytest

from specrepro.repro.case import load_cases, shipped_cases
from specrepro.repro.lanes.catalog import CATALOG, OUTCOMES
from specrepro.repro.plan import plan
from specrepro.repro.records import Kind

# What a device itself ends a trial with, in every lane.
TRAPPED = CATALOG["plain"].sees - OUTCOMES
ALWAYS = {"plain", "blocking", "memcheck"}


def expected(case: str) -> set[Kind]:
    """The kinds that the case's variants must show, at its own point and at those of its faces."""
    (loaded,) = load_cases([case])
    steps = plan(loaded.case, loaded.case).steps
    wanted = [step.wanted for step in steps if not step.wanted.open]
    kinds = {one.kind for of in wanted for one in of.predicted}
    return kinds | {Kind(one["kind"]) for of in wanted for one in of.literal}


@pytest.mark.parametrize("case", [path.stem for path in shipped_cases()])
def test_a_lane_is_listed_that_sees_a_kind_of_the_case_and_all_that_the_device_itself_traps(
    case: str,
) -> None:
    (loaded,) = load_cases([case])
    listed = {name for name in loaded.case.lanes if CATALOG[name].device}
    kinds = expected(case)
    fitting = {
        lane.name
        for lane in CATALOG.values()
        # a fault of another kind would end the trial before the lane has looked at its own
        if lane.device and lane.sees & kinds and kinds & TRAPPED <= lane.sees
    }
    assert listed == fitting | ALWAYS
