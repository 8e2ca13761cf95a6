"""Which attempt counts, what is tried again, and which places are avoided. Nothing here acts.

An attempt that decided nothing (INFRA: worker, node or GPU lost, result cut) is tried again,
elsewhere where there is an elsewhere. The first whole result of a task is the one that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .task import Attempt, Done, Ended, Fate, Outcome, Place, Task, Tried

MOST_ATTEMPTS = 4  # of one task, those that a place refused apart
MOST_REFUSALS = 20  # of one task, by places that were in use or avoided
MOST_DECLINED = 3  # of one task, by its own entry: what is missing there will be missing again
MOST_UNWELL = 2  # GPUs that one task may leave in a state in which nothing can be run on them
INFRA_TO_AVOID = 2  # INFRA results of one GPU, or of a node without, until it is avoided


@dataclass(frozen=True, slots=True)
class Counted:
    """The task has its result."""

    done: Done


@dataclass(frozen=True, slots=True)
class Again:
    """The task is tried once more."""

    attempt: Attempt
    reason: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """The task had its result already: this one is not counted a second time."""

    reason: str


Decision = Counted | Again | Dropped


@dataclass(slots=True)
class Ledger:
    """What is known of the tasks of one play. `avoided`: key of a place -> why."""

    avoided: dict[str, str] = field(default_factory=dict)
    _open: dict[str, list[Tried]] = field(default_factory=dict)
    _infra: dict[str, list[str]] = field(default_factory=dict)
    _number: dict[str, int] = field(default_factory=dict)  # of the attempt that is under way

    def begin(self, task: Task) -> Attempt:
        """The first attempt of a task; ValueError for an id that is there already."""
        if task.id in self._open:
            raise ValueError(f"two tasks have the id {task.id}")
        self._open[task.id] = []
        self._number[task.id] = 1
        return Attempt(task)

    def wants(self, attempt: Attempt) -> bool:
        """Whether an attempt is still to be made: its task may have a result meanwhile."""
        return attempt.task.id in self._open

    @property
    def waiting(self) -> bool:
        """Whether a task is without its result."""
        return bool(self._open)

    def heard(self, outcome: Outcome) -> Decision:
        """What follows from an outcome."""
        task, fate, reason = outcome.attempt.task, outcome.fate, outcome.reason
        if fate is Fate.WHOLE and outcome.ended.infra:
            fate, reason = Fate.INFRA, outcome.ended.infra
        elif fate is Fate.WHOLE and outcome.ended.declined:
            fate, reason = Fate.REFUSED, outcome.ended.declined
        tried = self._open.get(task.id)
        if tried is None:
            return Dropped(f"{task.label or task.id} had its result already")
        if fate is not Fate.WHOLE and outcome.attempt.number != self._number[task.id]:
            return Dropped(f"{task.label or task.id} was tried again already")
        if outcome.ended.unwell and outcome.place:
            self._avoid(outcome.place, outcome.ended.unwell)
        if fate is Fate.INFRA and outcome.place:
            self._count(outcome.place, reason)
        if fate is Fate.WHOLE:
            return self._counted(outcome, outcome.ended)
        if fate is Fate.NOWHERE:
            before = tried[-1].reason if tried else "no place is left to run it"
            return self._counted(outcome, Ended(), lost=reason or before)
        tried.append(Tried(outcome.place, fate, reason, outcome.ended))
        if why := _given_up(tried):
            return self._counted(outcome, Ended(), lost=why)
        keys = outcome.place.keys if outcome.place else ()
        again = replace(
            outcome.attempt,
            number=outcome.attempt.number + 1,
            not_at=outcome.attempt.not_at | frozenset(keys),
        )
        self._number[task.id] = again.number
        return Again(again, reason)

    def _counted(self, outcome: Outcome, ended: Ended, lost: str = "") -> Counted:
        task = outcome.attempt.task
        tried = tuple(self._open.pop(task.id))
        return Counted(Done(task, outcome.place, ended, lost, tried, outcome.left))

    def _count(self, place: Place, reason: str) -> None:
        for key in place.keys:
            said = self._infra.setdefault(key, [])
            said.append(reason)
            if len(said) >= INFRA_TO_AVOID and key not in self.avoided:
                self.avoided[key] = f"{len(said)} results lost there: {'; '.join(said)}"

    def _avoid(self, place: Place, reason: str) -> None:
        for key in place.keys:
            self.avoided.setdefault(key, reason)


def _given_up(tried: Sequence[Tried]) -> str:
    """Why a task is not tried once more, "" if it is."""
    lost = [one for one in tried if one.fate is Fate.INFRA]
    refused = [one for one in tried if one.fate is Fate.REFUSED]
    unwell = [one for one in lost if one.ended.unwell]
    declined = [one for one in refused if one.ended.declined]
    for word, ones, most in (
        ("left a GPU unwell", unwell, MOST_UNWELL),
        ("lost", lost, MOST_ATTEMPTS),
        ("declined", declined, MOST_DECLINED),
        ("refused", refused, MOST_REFUSALS),
    ):
        if len(ones) >= most:
            said = dict.fromkeys(one.reason for one in ones)
            return f"{word} {len(ones)} times: {'; '.join(said)}"
    return ""


def places(results: Mapping[str, Place | None]) -> list[dict[str, Any]]:
    """Node, GPUs and driver with the number of results from each; in order of appearance."""
    counted: dict[Place, int] = {}
    for place in results.values():
        if place is not None:
            known = Place(place.node, place.gpus, place.gpu_type, place.driver)
            counted[known] = counted.get(known, 0) + 1
    return [
        {
            "node": place.node,
            "gpus": list(place.gpus),
            "gpu_type": place.gpu_type,
            "driver": place.driver,
            "trials": count,
        }
        for place, count in counted.items()
    ]
