"""The rules of a search, one by one, on histories that are written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest

from specrepro.repro.bisection.question import Ending, Find, Kind, Options, Result, Trial
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
    Verdict,
)

EXACT = Options(exact=True)
BAD, GOOD = Bad("Xid 31"), Good()
NO_WHEEL = Untestable("no wheel for this Python", "no wheel")
WORDS: Mapping[str, Verdict] = {
    "B": BAD,
    ".": GOOD,
    "?": NO_WHEEL,
    "!": Untestable("torch is missing", "torch"),
    "x": Other("AssertionError in sampler"),
    "i": Infra("no space left on device"),
}


def history(text: str) -> tuple[list[str], Mapping[str, Sequence[Verdict]]]:
    """Builds b0, b1…, one a character of `text`: what each says every time it is asked."""
    names = [f"b{i}" for i in range(len(text))]
    return names, {name: [WORDS[word]] for name, word in zip(names, text, strict=True)}


def observed(trial: Trial, script: Mapping[str, Sequence[Verdict]]) -> Observation:
    """The next verdict of a script; the last one again when it is at its end."""
    said = script[trial.build]
    return Observation(trial.build, trial.number, said[min(trial.number, len(said)) - 1], 60.0)


def ask(search: Search, script: Mapping[str, Sequence[Verdict]]) -> tuple[Result, list[str]]:
    """The result, and the builds in the order in which they were tried."""
    tried: list[str] = []
    while not isinstance(step := search.next(), Result):
        assert step
        for trial in step:
            search.add(observed(trial, script))
            tried.append(trial.build)
        assert len(tried) < 1000
    return step, tried


def find(
    text: str, options: Options = EXACT, missing: Iterable[int] = (), **script: Sequence[Verdict]
) -> tuple[Result, list[str]]:
    """Search the history of `text`, with scripts of some builds in place of what it says."""
    names, said = history(text)
    unavailable = {f"b{i}": "not on the index" for i in missing}
    return ask(Search(names, unavailable, options=options), {**said, **script})


def told(result: Result, words: str) -> bool:
    return any(words in note for note in result.notes)


def test_the_bad_end_is_tried_first_then_the_good_one() -> None:
    result, tried = find("...BB")
    assert tried == ["b4", "b0", "b2", "b3"]
    assert (result.kind, result.build, result.previous) == (Kind.FIRST_BAD, "b3", "b2")
    assert (result.ending, result.confidence, result.notes) == (Ending.LOCATED, 1.0, ())


def test_a_fix_is_found_from_the_other_side() -> None:
    result, tried = find("BBB..", Options(exact=True, find=Find.FIRST_GOOD))
    assert tried[:2] == ["b0", "b4"]
    assert (result.kind, result.build, result.previous) == (Kind.FIRST_GOOD, "b3", "b2")
    assert result.candidates == ("b3",)


@pytest.mark.parametrize("asked", Find)
def test_ends_that_are_the_other_way_round_are_noticed(asked: Find) -> None:
    text = "BBB.." if asked is Find.FIRST_BAD else "...BB"
    for options in (Options(exact=True, find=asked), Options(find=asked)):
        result, _ = find(text, options)
        assert (result.build, result.previous) == ("b3", "b2")
        assert result.kind is (Kind.FIRST_GOOD if asked is Find.FIRST_BAD else Kind.FIRST_BAD)
        assert told(result, "the other way round")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("B..B", "b0 shows the fault as well as b3"),
        ("....", "b3 did not show the fault in a trial"),
        ("?..B", "no wheel for this Python"),
        ("...?", "no wheel for this Python"),
        ("B", "at least two builds"),
    ],
)
def test_ends_that_are_not_what_they_should_be_end_the_search(text: str, reason: str) -> None:
    result, tried = find(text)
    assert (result.kind, result.ending, result.build) == (Kind.NONE, Ending.ENDS, None)
    assert told(result, reason)
    assert set(tried) <= {"b0", f"b{len(text) - 1}"}


def test_an_end_that_cannot_be_had_is_said_and_nothing_is_tried() -> None:
    result, tried = find("...B", missing=[3])
    assert (result.kind, result.ending, tried) == (Kind.NONE, Ending.ENDS, [])
    assert told(result, "b3 is an end of the search and cannot be had")


def test_a_fault_that_never_comes_is_given_up_after_the_trials_of_an_end() -> None:
    result, tried = find("....", Options(end_trials=12))
    assert tried.count("b3") == 12
    assert tried.count("b0") == 3
    assert told(result, "did not show the fault in 12 trials")


def test_without_a_good_end_the_walk_doubles_its_steps() -> None:
    options = Options(exact=True, ends_given=False)
    result, tried = find("." * 10 + "B" * 20, options)
    assert tried[:6] == ["b29", "b28", "b27", "b25", "b21", "b13"]
    assert tried[6] == "b0"  # 32 steps back would be before the first
    assert (result.kind, result.build) == (Kind.FIRST_BAD, "b10")


def test_a_walk_takes_the_next_older_build_for_one_that_cannot_be_tested() -> None:
    options = Options(exact=True, ends_given=False)
    result, tried = find("..??BBBB", options, missing=[5])
    assert tried == ["b7", "b6", "b4", "b2", "b1", "b3"]
    assert (result.kind, result.candidates) == (Kind.NARROWED, ("b2", "b3", "b4"))
    assert result.ending is Ending.UNTESTABLE


@pytest.mark.parametrize("text", ["BBBB", "?BBB", "??BB"])
def test_a_walk_that_meets_no_good_build_says_so(text: str) -> None:
    result, _ = find(text, Options(exact=True, ends_given=False))
    assert (result.kind, result.ending) == (Kind.NONE, Ending.ENDS)
    assert told(result, "no good end")


def test_a_good_end_that_was_walked_to_has_to_be_clean_for_longer() -> None:
    said = {f"b{i}": [GOOD, BAD] * 40 for i in (30, 31)}
    names, script = history("." * 32)
    _, given = ask(Search(names[29:]), {**script, **said})
    result, walked = find("." * 32, Options(ends_given=False), **said)
    assert result.build == "b30"
    assert walked.count("b29") > given.count("b29")


def test_what_every_trial_shows_takes_one_trial_a_build_and_one_more_at_the_end() -> None:
    result, tried = find("....BBBB", Options(deterministic=True))
    assert tried == ["b7", "b0", "b3", "b5", "b4", "b4"]
    assert (result.kind, result.build, result.confidence) == (Kind.FIRST_BAD, "b4", 1.0)


def test_a_boundary_is_confirmed_by_the_bad_build_showing_the_fault_again() -> None:
    result, tried = find("....BBBB", Options(deterministic=True, end_trials=5), b4=[BAD, GOOD])
    assert tried[-5:] == ["b4"] * 5
    assert (result.kind, result.ending) == (Kind.NARROWED, Ending.UNCONFIRMED)
    # that rare a fault may have been missed before it, too
    assert result.candidates == ("b1", "b2", "b3", "b4")
    assert told(result, "b4 did not show the fault again")


def test_a_build_that_stops_telling_anything_is_left_alone() -> None:
    said = {"b3": [GOOD, *[WORDS["x"]] * 100]}
    result, tried = find("....BBBB", Options(), **said, b4=[BAD, GOOD, BAD, BAD])
    assert tried.count("b3") < 30
    assert (result.kind, result.ending) == (Kind.NARROWED, Ending.UNTESTABLE)
    assert result.candidates == ("b3", "b4")
    assert result.tested == {"b3": "20 of its trials ended without telling anything"}
    assert told(result, "another fault in b3")


def test_builds_between_two_that_are_to_be_skipped_are_tried() -> None:
    names, script = history("........BBBB")
    marks = [Mark("b5", Marked.SKIP), Mark("b9", Marked.SKIP)]
    result, tried = ask(Search(names, events=marks, options=EXACT), script)
    assert (result.kind, result.build) == (Kind.FIRST_BAD, "b8")
    assert not {"b5", "b9"} & set(tried)


def test_an_exact_search_that_is_cut_short_keeps_every_candidate() -> None:
    text = "." * 150 + "B" * 150
    for trials in range(2, 11):
        result, _ = find(text, Options(exact=True, budget_trials=trials))
        assert "b150" in result.candidates
        assert len(result.candidates) >= 299 // 2 ** (trials - 2)


def test_one_clean_trial_of_a_bad_build_makes_a_search_doubt_the_others() -> None:
    even, once = find("." * 8 + "B" * 8), find("." * 8 + "B" * 8, Options())
    odd = find("." * 8 + "B" * 8, Options(), b8=[BAD, GOOD, BAD])
    assert even[0].build == once[0].build == odd[0].build == "b8"
    assert odd[1].count("b7") > once[1].count("b7") >= 1
    assert odd[0].rate is not None
    assert 0.5 < odd[0].rate < 1
    assert once[0].rate is None


def test_another_fault_is_neither_good_nor_bad_and_is_named() -> None:
    result, _ = find("...xBB")
    assert (result.kind, result.ending) == (Kind.NARROWED, Ending.UNTESTABLE)
    assert result.candidates == ("b3", "b4")
    assert result.tested == {"b3": "ends with another fault: AssertionError in sampler"}
    assert told(result, "another fault in b3: AssertionError in sampler (1 trial)")
    _, repeated = find("...xBB", Options())
    assert repeated.count("b3") == 3


def test_failures_of_the_machine_are_retried_and_never_a_verdict() -> None:
    result, tried = find("...BBB", b2=[WORDS["i"], WORDS["i"], GOOD])
    assert tried.count("b2") == 3
    assert (result.kind, result.build) == (Kind.FIRST_BAD, "b3")


def test_a_machine_that_keeps_failing_stops_the_search_until_it_is_taken_up_again() -> None:
    names, script = history("...BBB")
    search = Search(names, options=EXACT)
    result, tried = ask(search, {**script, "b2": [WORDS["i"]]})
    assert (result.kind, result.ending) == (Kind.NARROWED, Ending.INFRA)
    assert tried.count("b2") == 3
    assert result.candidates == ("b1", "b2", "b3", "b4", "b5")
    assert isinstance(search.next(), Result)
    search.add(Opened())
    result, _ = ask(search, script)
    assert (result.kind, result.build) == (Kind.FIRST_BAD, "b3")


def test_a_block_that_fails_for_one_reason_is_presumed_and_said_to_be() -> None:
    text = "." * 40 + "?" * 60 + "B" * 40
    result, tried = find(text)
    assert len(tried) <= 20
    assert result.candidates == tuple(f"b{i}" for i in range(40, 101))
    tested, presumed = len(result.tested), len(result.presumed)
    assert tested + presumed == 60
    assert presumed > 40
    assert told(result, f"could be any of 61: {tested} tested untestable, {presumed} presumed")


def test_testable_builds_within_a_block_are_found_by_halving() -> None:
    result, tried = find(".." + "?" * 20 + "." * 10 + "?" * 40 + "BB")
    assert result.previous == "b31"
    assert result.candidates == tuple(f"b{i}" for i in range(32, 73))
    assert len(tried) < 30


def test_an_unavailable_build_at_the_boundary_leaves_it_open() -> None:
    result, _ = find("....BBB", missing=[3])
    assert (result.kind, result.ending) == (Kind.NARROWED, Ending.UNTESTABLE)
    assert result.candidates == ("b3", "b4")
    assert result.unavailable == {"b3": "not on the index"}
    assert told(result, "could be any of 2: 1 not to be had")


@pytest.mark.parametrize("options", [Options(exact=True, jobs=5), Options(jobs=5)])
def test_a_fault_that_went_and_came_back_is_reported(options: Options) -> None:
    result, _ = find("..BBBB......BBBBB", options)
    assert (result.kind, result.build, result.previous) == (Kind.FIRST_BAD, "b12", "b11")
    assert told(result, "not monotone: ")
    assert told(result, "there is more than one boundary")


def test_the_word_of_a_person_holds_against_every_trial() -> None:
    names, script = history("....BBBB")
    events: list[Event] = [Mark("b5", Marked.GOOD)]
    result, tried = ask(Search(names, events=events, options=EXACT), script)
    assert (result.build, result.previous) == ("b6", "b5")
    assert "b5" not in tried
    events += [Undo(), Mark("b4", Marked.SKIP), Mark("b3", Marked.BAD)]
    result, tried = ask(Search(names, events=events, options=EXACT), script)
    assert (result.build, result.previous) == ("b3", "b2")
    assert not {"b3", "b4"} & set(tried)


def test_what_is_taken_back_is_tried_again() -> None:
    names, script = history("....BBBB")
    search = Search(names, options=EXACT)
    wrong, tried = ask(search, {**script, "b3": [BAD]})
    assert (wrong.build, tried) == ("b3", ["b7", "b0", "b3", "b1", "b2"])
    for _ in ("b2", "b1", "b3"):
        search.add(Undo())
    right, tried = ask(search, script)
    assert (right.build, tried) == ("b4", ["b3", "b5", "b4"])


def test_a_budget_of_trials_ends_with_the_range_that_is_left() -> None:
    result, tried = find("." * 50 + "B" * 50, Options(exact=True, budget_trials=4))
    assert len(tried) == 4
    assert (result.kind, result.ending) == (Kind.NARROWED, Ending.BUDGET)
    assert "b50" in result.candidates
    assert len(result.candidates) == 25
    nothing, _ = find("." * 50 + "B" * 50, Options(exact=True, budget_trials=1))
    assert (nothing.kind, nothing.ending) == (Kind.NONE, Ending.BUDGET)


def test_a_budget_of_seconds_counts_trials_and_setups() -> None:
    result, tried = find("." * 50 + "B" * 50, Options(exact=True, budget_seconds=200))
    assert len(tried) == 4  # of 60 seconds each
    assert result.ending is Ending.BUDGET


TOKENS = [Bad("Xid 31", Exposure(tokens=n)) for n in (11_000, 11_500, 12_000)]


def test_a_clean_trial_that_ended_before_the_fault_comes_counts_for_nothing() -> None:
    short, long = Good(Exposure(tokens=5_000)), Good(Exposure(tokens=12_000))
    text = "......BB"
    said = {f"b{i}": [long] for i in range(6)} | {"b6": TOKENS, "b7": TOKENS}
    result, tried = find(text, Options(), **said)
    assert (result.kind, result.build, result.previous) == (Kind.FIRST_BAD, "b6", "b5")
    said |= {"b5": [short]}
    result, tried = find(text, Options(), **said)
    assert result.previous == "b4"
    assert result.tested == {"b5": "its clean trials all ended before the fault is known to come"}
    assert told(result, "3 trials of b5 ended clean before the fault is known to come")
    assert tried.count("b5") == 3


def test_control_characters_of_a_signature_reach_no_note() -> None:
    said = {"b1": [Other("boom\x1b[2J")], "b2": [Other("boom\x1b[2J")]}
    result, _ = find(".xxB", **said)
    assert all(note.isprintable() for note in result.notes)


def test_progress_tells_what_is_left() -> None:
    names, script = history("." * 60 + "B" * 68)
    search = Search(names, options=EXACT)
    assert search.progress().low is None
    left = []
    while not isinstance(step := search.next(), Result):
        search.add(observed(step[0], script))
        progress = search.progress()
        if progress.trials_left is not None:
            left.append(progress.trials_left)
            assert progress.low is not None
            assert progress.high is not None
    assert left == [7, 6, 5, 4, 3, 2, 1, 0]
    assert (progress.low, progress.high) == ("b59", "b60")
    assert progress.candidates == 1
