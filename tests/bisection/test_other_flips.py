"""Every boundary that trials show is gone into, and what no trial shows is not invented."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.bisection.candidates import Candidate, Line
from specrepro.repro.bisection.other_flips import records, search_all
from specrepro.repro.bisection.question import Find, Options
from specrepro.repro.bisection.record import Stage
from specrepro.repro.bisection.search import Search
from specrepro.repro.bisection.session import Quest
from specrepro.repro.bisection.timeline import flips, states
from specrepro.repro.bisection.verdicts import Bad, Good, Observation

WORDS = {"g": "good", "b": "bad"}


class History:
    """Builds whose verdicts are known; `?` is one that cannot be had."""

    def __init__(self, letters: str) -> None:
        self.letters = letters
        self.builds = [f"v{number}" for number in range(len(letters))]
        self.trials = 0
        candidates = tuple(map(Candidate, self.builds))
        gone = {b: "no wheel" for b, s in zip(self.builds, letters, strict=True) if s == "?"}
        self.line = Line(candidates, gone)

    def search(self, quest: Quest) -> Stage:
        engine = Search(quest.line.builds, quest.line.unavailable, (), quest.options)
        while isinstance(step := engine.next(), list):
            for trial in step:
                letter = self.letters[int(trial.build[1:])]
                verdict = Bad("x") if letter == "b" else Good()
                engine.add(Observation(trial.build, trial.number, verdict, 1.0))
                self.trials += 1
        return Stage(quest.name, quest.line, quest.options.find, engine.events, {}, step)

    def all(self, jobs: int) -> tuple[Stage, list[Stage]]:
        options = Options(exact=True, jobs=jobs)
        first = self.search(Quest("release", self.line, options))
        return first, search_all(first, options, "", self.search)

    def truth(self) -> set[tuple[str, str, str]]:
        known = {
            build: WORDS.get(letter, "unknown")
            for build, letter in zip(self.builds, self.letters, strict=True)
        }
        return {(str(flip.find), flip.previous, flip.build) for flip in flips(known)}


def boundaries(found: list[Stage]) -> list[tuple[str, str | None, str | None]]:
    return [(r["find"], r["previous"], r["build"]) for r in records(found)]


def test_of_a_fault_that_went_and_came_back_all_boundaries_are_found_in_their_order() -> None:
    # three at once try the quarters of the line: bad, good and bad again
    first, others = History("ggbbbbggggggbbbb").all(jobs=3)
    assert (first.result.previous, first.result.build) == ("v11", "v12")
    assert boundaries(others) == [("first_bad", "v1", "v2"), ("first_good", "v5", "v6")]
    assert {stage.name for stage in others} == {"flip"}


def test_a_boundary_between_neighbours_that_were_both_tried_is_told_too() -> None:
    first, others = History("gbgb").all(jobs=2)
    assert (first.result.previous, first.result.build) == ("v2", "v3")
    assert boundaries(others) == [("first_bad", "v0", "v1"), ("first_good", "v1", "v2")]


@pytest.mark.parametrize("letters", ["ggbggggggggggbbb", "gggggggggggggbbb", "gb", "g??b"])
def test_where_trials_show_one_boundary_nothing_more_is_tried(letters: str) -> None:
    history = History(letters)
    first, others = history.all(jobs=1)
    assert others == []
    assert history.trials == len([e for e in first.events if isinstance(e, Observation)])


@settings(max_examples=200, deadline=None)
@given(middle=st.text("gb?", max_size=30), jobs=st.integers(1, 4))
def test_what_is_found_is_so_and_every_change_that_trials_show_is_gone_into(
    middle: str, jobs: int
) -> None:
    history = History(f"g{middle}b")
    first, others = history.all(jobs)
    truth = history.truth()
    found = [("first_bad", first.result.previous, first.result.build), *boundaries(others)]
    for find, previous, build in found:
        known = [t for t in truth if t[0] == find and (t[1], t[2]) == (previous, build)]
        # where builds are missing the answer is a range, which holds the boundary
        assert known or "?" in middle
    assert len(found) == len(set(found))
    events = [event for stage in (first, *others) for event in stage.events]
    shown = flips(states(history.builds, events))
    gone_into = {(previous, build) for _, previous, build in found}
    assert {(flip.previous, flip.build) for flip in shown} <= gone_into
    assert {stage.find for stage in others} <= set(Find)
