"""Whatever order outcomes come in, each task has exactly one result, and none is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.execution.play import Told, play
from specrepro.repro.execution.policy import (
    INFRA_TO_AVOID,
    MOST_ATTEMPTS,
    MOST_DECLINED,
    MOST_UNWELL,
    Again,
    Counted,
    Dropped,
    Ledger,
    places,
)
from specrepro.repro.execution.task import Attempt, Done, Ended, Fate, Outcome, Place, Task

A, B = Place("n1", ("GPU-a",)), Place("n1", ("GPU-b",))


def task(name: str) -> Task:
    return Task(name, "lane", {}, Path(name), 1.0, label=name)


@dataclass
class Scripted:
    """A place whose outcomes a test has drawn; when the script is out, all ends well. An outcome
    may be told twice, and attempts end in any order."""

    script: list[tuple[Fate, int, bool, bool]]
    flying: list[Attempt] = field(default_factory=list)
    late: list[Outcome] = field(default_factory=list)
    started: Counter[str] = field(default_factory=Counter)
    avoided: list[str] = field(default_factory=list)
    stopped: int = 0

    def room(self) -> bool:
        return len(self.flying) < 3

    def start(self, attempt: Attempt, told: Told) -> None:
        self.started[attempt.task.id] += 1
        self.flying.append(attempt)

    def wait(self) -> list[Outcome]:
        late, self.late = self.late, []
        if not self.flying:
            return late
        fate, number, unwell, twice = self.script.pop() if self.script else (Fate.WHOLE, 0, 0, 0)
        attempt = self.flying.pop(number % len(self.flying))
        place = (A, B, Place("n2"), None)[number % 4]
        ended = Ended(unwell="it is ill" if unwell else "")
        outcome = Outcome(attempt, fate, place, f"because {number}", ended)
        if twice:
            self.late.append(outcome)
        return [*late, outcome]

    def avoid(self, key: str, reason: str) -> None:
        self.avoided.append(key)

    def stop(self) -> None:
        self.stopped += 1


steps = st.tuples(st.sampled_from(list(Fate)), st.integers(0, 7), st.booleans(), st.booleans())


@given(st.integers(0, 6), st.lists(steps, max_size=60))
def test_each_task_has_exactly_one_result_whatever_happens(
    count: int, script: list[tuple[Fate, int, bool, bool]]
) -> None:
    where = Scripted(list(script))
    done = list(play([task(str(n)) for n in range(count)], where))
    assert Counter(one.task.id for one in done) == {str(n): 1 for n in range(count)}
    for one in done:  # every start was answered for, once: by what was tried, or by what counts
        assert where.started[one.task.id] in (len(one.tried), len(one.tried) + 1)
    assert len(set(where.avoided)) == len(where.avoided)
    assert where.stopped == 1


@given(st.lists(steps, max_size=40))
def test_what_is_given_up_was_tried_as_often_as_is_allowed_or_had_nowhere_to_go(
    script: list[tuple[Fate, int, bool, bool]],
) -> None:
    (done,) = play([task("t")], Scripted(list(script)))
    lost = [one for one in done.tried if one.fate is Fate.INFRA]
    refused = [one for one in done.tried if one.fate is Fate.REFUSED]
    assert len(lost) <= MOST_ATTEMPTS
    if not done.lost:
        assert len(lost) < MOST_ATTEMPTS
        assert sum(bool(one.ended.unwell) for one in lost) < MOST_UNWELL
    elif done.lost.startswith("lost"):
        assert len(lost) == MOST_ATTEMPTS
    elif done.lost.startswith("left a GPU unwell"):
        assert sum(bool(one.ended.unwell) for one in lost) == MOST_UNWELL
    assert len(lost) + len(refused) == len(done.tried)


def test_the_first_whole_result_counts_and_a_later_one_does_not() -> None:
    ledger = Ledger()
    attempt = ledger.begin(task("t"))
    first = ledger.heard(Outcome(attempt, Fate.WHOLE, A, ended=Ended(seconds=1.0)))
    second = ledger.heard(Outcome(attempt, Fate.WHOLE, B, ended=Ended(seconds=2.0)))
    assert isinstance(first, Counted)
    assert (first.done.place, first.done.ended.seconds) == (A, 1.0)
    assert isinstance(second, Dropped)


def test_infra_goes_elsewhere_and_a_gpu_with_two_of_them_is_avoided_and_named() -> None:
    ledger = Ledger()
    again = [
        ledger.heard(
            Outcome(ledger.begin(task(name)), Fate.INFRA, A, f"its worker was lost {name}")
        )
        for name in ("t", "u")
    ]
    for one in again:
        assert isinstance(one, Again)
        assert one.attempt.not_at == {"n1/GPU-a"}
    assert INFRA_TO_AVOID == 2
    assert ledger.avoided == {
        "n1/GPU-a": "2 results lost there: its worker was lost t; its worker was lost u"
    }


def test_what_an_entry_says_of_its_place_decides_like_what_the_place_says() -> None:
    ledger = Ledger()
    attempt = ledger.begin(task("t"))
    said = Outcome(attempt, Fate.WHOLE, A, ended=Ended(infra="the result is cut"))
    decision = ledger.heard(said)
    assert isinstance(decision, Again)
    assert decision.reason == "the result is cut"
    for left in range(MOST_DECLINED, 0, -1):
        declined = Outcome(decision.attempt, Fate.WHOLE, B, ended=Ended(declined="no tool"))
        after = ledger.heard(declined)
        assert isinstance(after, Again if left > 1 else Counted)
        decision = after if isinstance(after, Again) else decision
    assert isinstance(after, Counted)
    assert after.done.lost == "declined 3 times: no tool"


def test_a_result_counts_although_its_gpu_is_unwell_afterwards() -> None:
    ledger = Ledger()
    ended = Ended(unwell="it fell off the bus")
    decision = ledger.heard(Outcome(ledger.begin(task("t")), Fate.WHOLE, A, ended=ended))
    assert isinstance(decision, Counted)
    assert decision.done.lost == ""
    assert ledger.avoided == {"n1/GPU-a": "it fell off the bus"}


def test_two_tasks_of_one_name_are_refused() -> None:
    ledger = Ledger()
    ledger.begin(task("t"))
    with pytest.raises(ValueError, match="two tasks have the id t"):
        ledger.begin(task("t"))


def test_a_loop_that_is_left_ends_what_runs() -> None:
    where = Scripted([])
    playing = play([task(str(n)) for n in range(5)], where)
    first: Done = next(playing)
    assert first.lost == ""
    playing.close()
    assert where.stopped == 1


def test_places_are_counted_each_once() -> None:
    results: dict[str, Any] = {"1": A, "2": B, "3": Place("n1", ("GPU-a",), pid=7), "4": None}
    assert [(one["gpus"], one["trials"]) for one in places(results)] == [
        (["GPU-a"], 2),
        (["GPU-b"], 1),
    ]
