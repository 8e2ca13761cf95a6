"""A whole line with its verdicts: where it changes, and what of that is the answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.bisection.question import Ending, Find, Kind
from specrepro.repro.bisection.timeline import flips, scanned, states
from specrepro.repro.bisection.verdicts import (
    Bad,
    Event,
    Good,
    Infra,
    Mark,
    Marked,
    Observation,
    Undo,
    Untestable,
    Verdict,
)

VERDICTS: dict[str, Verdict] = {
    "g": Good(),
    "b": Bad("row-copy"),
    "?": Untestable("no such file", "no such file"),
    "!": Infra("no answer"),
}


def tried(text: str) -> tuple[list[str], list[Event]]:
    """A line with one build a letter: g, b, ? (untestable), ! (machine), . (not tried)."""
    line = [f"0.{number}" for number in range(len(text))]
    events: list[Event] = [
        Observation(build, 1, VERDICTS[letter], 1.0)
        for build, letter in zip(line, text, strict=True)
        if letter != "."
    ]
    return line, events


def test_a_defect_that_came_went_and_came_back_has_three_changes() -> None:
    line, events = tried("gbbgb")
    found = flips(states(line, events))
    assert [(str(flip.find), flip.previous, flip.build) for flip in found] == [
        ("first_bad", "0.0", "0.1"),
        ("first_good", "0.2", "0.3"),
        ("first_bad", "0.3", "0.4"),
    ]
    result = scanned(line, events, Find.FIRST_BAD, {})
    assert (result.kind, result.build, result.previous) == (Kind.FIRST_BAD, "0.4", "0.3")
    assert result.notes == ("good again from 0.3 on", "bad again from 0.4 on")


def test_builds_that_tell_nothing_at_the_boundary_leave_it_narrowed() -> None:
    line, events = tried("gg?!.bb")
    result = scanned(line, events, Find.FIRST_BAD, {"0.4": "no wheel"})
    assert (result.kind, result.ending) == (Kind.NARROWED, Ending.UNTESTABLE)
    assert result.candidates == ("0.2", "0.3", "0.4", "0.5")
    assert dict(result.tested) == {"0.2": "no such file"}
    assert dict(result.unavailable) == {"0.4": "no wheel"}


def test_without_a_change_there_is_no_boundary() -> None:
    for text, ending, note in (
        ("bbb", Ending.LOCATED, "every build that could be tested is bad"),
        ("g?g", Ending.LOCATED, "every build that could be tested is good"),
        ("??!", Ending.UNTESTABLE, "no change of the kind that was sought"),
        ("bgg", Ending.LOCATED, "no change of the kind that was sought"),
    ):
        line, events = tried(text)
        result = scanned(line, events, Find.FIRST_BAD, {})
        assert (result.kind, result.ending, result.notes) == (Kind.NONE, ending, (note,))


def test_a_persons_word_holds_against_trials_until_it_is_taken_back() -> None:
    line, events = tried("gb")
    events.append(Mark("0.1", Marked.GOOD))
    assert states(line, events) == {"0.0": "good", "0.1": "good"}
    events.append(Mark("0.0", Marked.SKIP))
    assert states(line, events) == {"0.0": "unknown", "0.1": "good"}
    assert states(line, [*events, Undo(), Undo()]) == {"0.0": "good", "0.1": "bad"}


@given(st.text("gb?.", min_size=1, max_size=40))
def test_changes_alternate_and_every_decided_build_lies_on_its_side(text: str) -> None:
    line, events = tried(text)
    state = states(line, events)
    found = flips(state)
    side, at = "", 0
    for flip in found:
        start, end = line.index(flip.previous), line.index(flip.build)
        before = {state[build] for build in line[at : start + 1]} - {"unknown"}
        side = "bad" if flip.find is Find.FIRST_GOOD else "good"
        assert before == {side}
        assert list(flip.between) == line[start + 1 : end]
        assert {state[build] for build in flip.between} <= {"unknown"}
        at = end
    rest = {state[build] for build in line[at:]} - {"unknown"}
    assert len(rest) <= 1
    assert not found or rest == {"bad" if side == "good" else "good"}
