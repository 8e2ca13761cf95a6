"""Searches of histories whose fault is known."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.bisection.interval import Interval
from specrepro.repro.bisection.lines import from_line, to_line
from specrepro.repro.bisection.question import Ending, Find, Kind, Options, Result
from specrepro.repro.bisection.search import Search
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
    Undo,
    Untestable,
)

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "fake_world.py"


def load(path: Path) -> Any:
    """A module of the benchmarks, which are no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


fake = load(SCRIPT)
World, play = fake.World, fake.play
EXACT = Options(exact=True)
LIMIT = 3000  # trials


@pytest.mark.parametrize("length", [2, 3, 5, 8, 9, 33, 128])
def test_exact_verdicts_take_the_ends_and_the_halvings(length: int) -> None:
    halvings = math.ceil(math.log2(length - 1)) if length > 2 else 0
    for first_bad in range(1, length):
        world = World(length, first_bad)
        result, seen = play(Search(world.builds, options=EXACT), world, LIMIT)
        assert (result.kind, result.build) == (Kind.FIRST_BAD, f"b{first_bad}")
        assert result.previous == f"b{first_bad - 1}"
        assert result.candidates == (result.build,)
        assert len(seen) <= 2 + halvings
        assert len({one.build for one in seen}) == len(seen)


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    flips: bool = False,
    whole: bool = False,
    p: st.SearchStrategy[float] | None = None,
) -> Any:
    """whole: every build can be tested."""
    length = draw(st.integers(2, 60))
    first_bad = draw(st.integers(1, length - 1))
    inner = st.integers(1, 58)
    if whole:
        return World(length, first_bad, seed=draw(st.integers(0, 999)))
    scattered = draw(st.dictionaries(inner, st.sampled_from(["torch", "wheel"]), max_size=8))
    start, size = draw(st.integers(1, length)), draw(st.integers(0, 30))
    block = dict.fromkeys(range(start, min(start + size, length - 1)), "cuda")
    # an even number of flips, so that the last build is bad
    turns = draw(st.lists(st.integers(first_bad + 1, length), max_size=2)) if flips else []
    ends = sorted(at for at in turns if at < length)
    return World(
        length,
        first_bad,
        p=1.0 if p is None else draw(p),
        untestable={i: why for i, why in (scattered | block).items() if i < length - 1},
        flips=ends if len(ends) == 2 else (),
        crashes=frozenset(i for i in draw(st.sets(inner, max_size=3)) if i < length - 1),
        seed=draw(st.integers(0, 999)),
    )


def bracket(search: Any, world: Any) -> tuple[int, int] | None:
    """The builds between which a search seeks, in the order of the world; None before that."""
    step = search.known().step
    if not isinstance(step, Interval):
        return None
    if not search.options.exact:  # what it expects to be good needs more than one clean trial
        return step.low, step.high
    progress = search.progress()
    return world.builds.index(progress.low), world.builds.index(progress.high)


@given(world=worlds(flips=True), jobs=st.integers(1, 4), exact=st.booleans())
@settings(deadline=None, max_examples=150)
def test_the_interval_always_lies_between_a_good_and_a_bad_build(
    world: Any, jobs: int, exact: bool
) -> None:
    search = Search(world.builds, options=Options(exact=exact, jobs=jobs))

    def check(_: Observation) -> None:
        if (found := bracket(search, world)) is not None:
            low, high = found
            assert low < high
            assert not world.bad(low)
            assert world.bad(high)

    result, _ = play(search, world, LIMIT, check)
    assert result.kind in (Kind.FIRST_BAD, Kind.NARROWED)
    # a boundary is among the candidates, and in a history with one it is that one
    assert any(world.bad(i) and not world.bad(i - 1) for i in numbers(result.candidates))
    if not world.flips:
        assert world.first_bad in numbers(result.candidates)


@given(world=worlds(whole=True), jobs=st.integers(2, 5), exact=st.booleans())
@settings(deadline=None, max_examples=60)
def test_many_at_once_find_what_one_at_a_time_finds(world: Any, jobs: int, exact: bool) -> None:
    one, _ = play(Search(world.builds, options=Options(exact=exact)), world, LIMIT)
    many, seen = play(Search(world.builds, options=Options(exact=exact, jobs=jobs)), world, LIMIT)
    assert (many.kind, many.build, many.previous) == (one.kind, one.build, one.previous)
    assert many.kind is Kind.FIRST_BAD
    if exact:
        # N + 1 parts a round, after the ends
        rounds = math.ceil(math.log(max(world.length - 1, 1), jobs + 1) + 1)
        assert len(seen) <= 2 + jobs * rounds


@given(world=worlds(), jobs=st.integers(2, 5), exact=st.booleans())
@settings(deadline=None, max_examples=60)
def test_many_at_once_keep_the_truth_where_builds_cannot_be_tested(
    world: Any, jobs: int, exact: bool
) -> None:
    result, _ = play(Search(world.builds, options=Options(exact=exact, jobs=jobs)), world, LIMIT)
    assert world.first_bad in numbers(result.candidates)
    assert len(result.candidates) == 1 + len(result.tested) + len(result.presumed)


def numbers(builds: tuple[str, ...]) -> list[int]:
    return [int(build[1:]) for build in builds]


@given(
    world=worlds(p=st.sampled_from([1.0, 0.9, 0.5])),
    taken=st.sets(st.integers(1, 58), max_size=20),
    jobs=st.integers(1, 3),
)
@settings(deadline=None, max_examples=60)
def test_a_build_known_to_be_unavailable_is_never_tried(
    world: Any, taken: set[int], jobs: int
) -> None:
    missing = {f"b{i}": "no wheel" for i in taken if i < world.length - 1}
    search = Search(world.builds, missing, options=Options(jobs=jobs))
    result, seen = play(search, world, LIMIT)
    assert not {one.build for one in seen} & missing.keys()
    assert result.unavailable.keys() <= missing.keys()
    assert set(result.unavailable) == set(result.candidates[:-1]) & missing.keys()


@given(world=worlds(p=st.sampled_from([1.0, 0.9, 0.5, 0.25])), exact=st.booleans())
@settings(deadline=None, max_examples=25)
def test_a_search_killed_after_any_line_goes_on_to_the_same_result(world: Any, exact: bool) -> None:
    options = Options(exact=exact)
    live, seen = play(Search(world.builds, options=options), world, LIMIT)
    lines = [to_line(one) for one in seen]
    cuts = range(len(lines) + 1) if len(lines) < 30 else range(0, len(lines) + 1, 7)
    for cut in cuts:
        events: list[Event] = [from_line(line) for line in lines[:cut]]
        events.append(Opened())
        again, rest = play(Search(world.builds, events=events, options=options), world, LIMIT)
        assert again == live
        assert [to_line(one) for one in rest] == lines[cut:]


@given(world=worlds(p=st.floats(0.2, 1.0)), jobs=st.integers(1, 3))
@settings(deadline=None, max_examples=25)
def test_a_flaky_fault_proves_what_it_proves(world: Any, jobs: int) -> None:
    search = Search(world.builds, options=Options(jobs=jobs))

    def check(_: Observation) -> None:
        step = search.known().step
        if isinstance(step, Interval):
            assert step.high >= world.first_bad

    result, seen = play(search, world, LIMIT, check)
    if result.kind is Kind.NONE:
        assert result.ending is Ending.ENDS
        return
    assert 0 <= result.confidence <= 1
    if result.kind is Kind.FIRST_BAD:
        # the boundary was shown from both sides, and the fault at the end once more
        bad = [one for one in seen if one.build == result.build and isinstance(one.verdict, Bad)]
        good = [one for one in seen if one.build == result.previous]
        assert len(bad) >= 2
        assert good
        assert all(isinstance(one.verdict, Good) for one in good)
        assert seen.index(bad[-1]) > seen.index(good[0])
        assert result.confidence >= search.options.confidence


said = st.sampled_from(
    [
        Bad("Xid 31", Exposure(tokens=9)),
        Bad("Xid 31", Exposure(tokens=5)),
        Good(Exposure(tokens=9)),
        Good(Exposure(tokens=7)),
        Good(Exposure(tokens=2)),
        Good(),
        Other("AssertionError"),
        Untestable("no wheel", "wheel"),
        Untestable("torch", "torch"),
        Infra("disk"),
    ]
)
builds = st.integers(0, 9).map("b{}".format)
noted = st.one_of(
    st.builds(Observation, builds, st.just(1), said, st.just(1.0)),
    st.builds(Observation, builds, st.just(1), said, st.just(1.0)),
    st.builds(Mark, builds, st.sampled_from(Marked)),
    st.just(Undo()),
    st.just(Opened()),
)


@given(
    given=st.lists(noted, max_size=30),
    missing=st.sets(builds, max_size=3),
    data=st.data(),
    options=st.builds(
        Options,
        find=st.sampled_from(Find),
        exact=st.booleans(),
        deterministic=st.booleans(),
        ends_given=st.booleans(),
        jobs=st.integers(1, 3),
        end_trials=st.integers(3, 9),
    ),
)
@settings(deadline=None, max_examples=150)
def test_whatever_was_observed_there_is_a_next_step_or_an_answer(
    given: list[Event], missing: set[str], data: st.DataObject, options: Options
) -> None:
    names = [f"b{i}" for i in range(10)]
    search = Search(names, dict.fromkeys(missing, "gone"), given, options)
    for _ in range(6):
        step = search.next()
        search.progress()
        if isinstance(step, Result):
            assert (step.kind is Kind.NONE) == (step.build is None)
            assert set(step.candidates) <= set(names)
            assert step.candidates == tuple(sorted(step.candidates))
            assert {*step.tested, *step.presumed, *step.unavailable} <= set(names)
            assert 0 <= step.confidence <= 1
            return
        assert 0 < len(step) <= options.jobs
        assert not {trial.build for trial in step} & missing
        for trial in step:
            verdict = data.draw(said)
            search.add(Observation(trial.build, trial.number, verdict, 1.0))


@given(data=st.data(), exact=st.booleans(), deterministic=st.booleans())
@settings(deadline=None, max_examples=25)
def test_a_search_ends_whatever_its_builds_do(
    data: st.DataObject, exact: bool, deterministic: bool
) -> None:
    """Each build has a habit, in which the fault may come and go, and so may all else."""
    names = [f"b{i}" for i in range(10)]
    habits = {name: data.draw(st.lists(said, min_size=1, max_size=4)) for name in names}
    options = Options(exact=exact, deterministic=deterministic, end_trials=9)
    search = Search(names, options=options)
    for _ in range(LIMIT):
        step = search.next()
        if isinstance(step, Result):
            return
        for trial in step:
            habit = habits[trial.build]
            verdict = habit[trial.number % len(habit)]
            search.add(Observation(trial.build, trial.number, verdict, 1.0))
    raise AssertionError(f"no end after {LIMIT} trials")
