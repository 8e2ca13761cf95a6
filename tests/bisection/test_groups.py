"""Trials of different GPUs or drivers are not weighed together, unless that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.bisection.crew import _needs
from specrepro.repro.bisection.groups import UNTOLD, Group, counted, deciding, group
from specrepro.repro.bisection.question import Ending, Kind, Options, Result, Trial
from specrepro.repro.bisection.search import Search
from specrepro.repro.bisection.tally import Tally, tallies
from specrepro.repro.bisection.trials import as_place
from specrepro.repro.bisection.verdicts import (
    Bad,
    Event,
    Exposure,
    Good,
    Infra,
    Mark,
    Marked,
    Observation,
    Opened,
    Other,
    Place,
    Undo,
    Untestable,
    effective,
)
from specrepro.repro.execution.task import Needs
from specrepro.repro.execution.task import Place as Ran

H100 = Place("1a2b", "x86_64", "NVIDIA H100 PCIe", "580.65.06")
OLDER = Place("3c4d", "x86_64", "NVIDIA H100 PCIe", "570.86.15")
A100 = Place("5e6f", "x86_64", "NVIDIA A100-SXM4-80GB", "580.65.06")
NO_GPU, ARM = Place("here", "x86_64"), Place("7a8b", "aarch64")
PLACES = (H100, OLDER, A100, NO_GPU, ARM, None)
BUILDS = [f"b{i}" for i in range(6)]

verdicts = st.one_of(
    st.builds(Bad, st.just("Xid 31"), st.builds(Exposure, tokens=st.integers(1, 9))),
    st.builds(Good, st.builds(Exposure, tokens=st.integers(1, 9))),
    st.builds(Other, st.sampled_from(["AssertionError", "TypeError"])),
    st.builds(Untestable, st.just("no wheel"), st.just("wheel")),
    st.builds(Infra, st.just("no space")),
)
observations = st.builds(
    Observation,
    st.sampled_from(BUILDS),
    st.integers(1, 9),
    verdicts,
    st.just(1.0),
    place=st.sampled_from(PLACES),
)
marks = st.builds(Mark, st.sampled_from(BUILDS), st.sampled_from(Marked))
events = st.lists(st.one_of(observations, observations, marks, st.just(Undo()), st.just(Opened())))


def first_that_decides(seen: Sequence[Event]) -> Place | None:
    """Where the first good or bad trial ran, else the first that says anything of its build."""
    for kinds in ((Bad, Good), (Other, Untestable)):
        for event in seen:
            if isinstance(event, Observation) and isinstance(event.verdict, kinds):
                return event.place
    return None


def weight(one: Tally) -> Tally:
    """What a tally says of its build: trials that failed for the machine say nothing."""
    places = {"first_clean_at": 0, "last_bad_at": 0}
    return replace(one, trials=0, infra=0, **places)


@given(seen=events)
@settings(deadline=None, max_examples=400)
def test_what_is_weighed_is_of_one_group_whatever_was_seen_where(seen: list[Event]) -> None:
    kept = effective(seen)
    place = first_that_decides(kept)
    same = [
        event
        for event in kept
        if not isinstance(event, Observation) or group(event.place) == group(place)
    ]
    found, wanted = tallies(counted(seen, mixed=False), others=3), tallies(same, others=3)
    for build in BUILDS:
        one, other = found.get(build, Tally()), wanted.get(build, Tally())
        assert weight(one) == weight(other)
    # nothing is lost: every trial is still there to be listed
    assert len(counted(seen, mixed=False)) == len(kept)


@given(seen=events)
@settings(deadline=None)
def test_asked_to_mix_everything_counts_as_it_is(seen: list[Event]) -> None:
    assert counted(seen, mixed=True) == effective(seen)


@given(seen=events, exact=st.booleans())
@settings(deadline=None, max_examples=60)
def test_a_search_follows_from_its_group_alone(seen: list[Event], exact: bool) -> None:
    options = Options(exact=exact)
    chosen = deciding(seen)
    here = [
        event
        if not isinstance(event, Observation) or group(event.place) == chosen
        else replace(event, verdict=Infra("elsewhere"))
        for event in effective(seen)
    ]
    one, other = (
        Search(BUILDS, events=seen, options=options),
        Search(BUILDS, events=here, options=options),
    )
    assert one.known() == other.known()


def test_drivers_and_kinds_of_gpu_are_groups_and_machines_of_one_kind_are_not() -> None:
    assert len({group(place) for place in PLACES}) == len(PLACES)
    assert group(H100) == group(replace(H100, node="9999"))
    assert str(group(H100)) == "NVIDIA H100 PCIe with driver 580.65.06"
    assert str(group(NO_GPU)) == "no GPU, x86_64"
    assert str(group(None)) == "an unknown machine"


def played(search: Search, run: Callable[[Trial], Observation]) -> Result:
    for _ in range(100):
        step = search.next()
        if isinstance(step, Result):
            return step
        for trial in step:
            search.add(run(trial))
    raise AssertionError("no end")


def test_trials_of_another_gpu_end_a_search_and_are_named() -> None:
    """The bad end decided on an H100; only an A100 is left, on which every build is clean."""
    search = Search(BUILDS, options=Options(exact=True))

    def run(trial: Trial) -> Observation:
        bad = trial.build == "b5"
        verdict = Bad("Xid 31") if bad else Good()
        return Observation(trial.build, trial.number, verdict, 1.0, place=H100 if bad else A100)

    result = played(search, run)
    assert (result.kind, result.ending) == (Kind.NONE, Ending.INFRA)
    [note, *_] = result.notes
    assert "not counted: it ran on NVIDIA A100-SXM4-80GB with driver 580.65.06" in note
    assert "what decided on NVIDIA H100 PCIe with driver 580.65.06" in note


def test_a_trial_that_does_not_count_is_tried_again_under_its_next_number() -> None:
    search = Search(BUILDS, options=Options(exact=True))
    tried: list[tuple[str, int]] = []

    def run(trial: Trial) -> Observation:
        tried.append((trial.build, trial.number))
        bad = int(trial.build[1:]) >= 3
        place = A100 if trial.number == 1 and trial.build != "b5" else H100
        verdict = Bad("Xid 31") if bad == (place is H100) else Good()
        return Observation(trial.build, trial.number, verdict, 1.0, place=place)

    result = played(search, run)
    assert (result.kind, result.build, result.previous) == (Kind.FIRST_BAD, "b3", "b2")
    assert len(set(tried)) == len(tried)
    assert {number for build, number in tried if build != "b5"} == {1, 2}


@pytest.mark.parametrize(
    ("ran", "place"),
    [
        (None, None),
        (Ran(machine="x86_64"), NO_GPU),
        (Ran("1a2b", ("GPU-1",), "NVIDIA H100 PCIe", "580.65.06", "x86_64"), H100),
        # a cluster may count GPUs that NVML does not show: these are not "no GPU"
        (Ran("1a2b", ("0",), None, None, "x86_64"), Place("1a2b", "x86_64", UNTOLD)),
    ],
)
def test_a_place_is_kept_without_the_name_of_a_machine(
    ran: Ran | None, place: Place | None
) -> None:
    assert as_place(ran) == place


def test_a_trial_asks_for_the_gpu_and_driver_on_which_the_others_ran() -> None:
    one = Needs(gpus=1)
    assert _needs(one, None) == one
    assert _needs(one, group(H100)) == Needs(
        gpus=1, gpu_types=("NVIDIA H100 PCIe",), driver="==580.65.06"
    )
    assert _needs(one, Group(UNTOLD)) == one
    assert _needs(Needs(), group(NO_GPU)) == Needs()
