"""The trials of a run, played where it was asked for: first the lanes without a device, then those
on GPUs, so that at home nothing else of ours works beside a GPU trial."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .device_lanes import (
    Asked,
    DeviceLane,
    DeviceTrial,
    cards_here,
    device_trials,
    result_of,
    said_by,
    skipped,
    why_not_here,
)
from .errors import LaneError
from .execution.choice import Choice, place_of
from .execution.play import Where, play
from .execution.task import HERE, Moment
from .job import Job, Piece, Played, added, pieces, taken_over, together, told_of, whole
from .job import played as left_by
from .lanes.process import played as lines_of
from .records import TrialResult

Key = tuple[str, str]  # case, lane
Results = dict[Key, tuple[TrialResult, ...]]


@dataclass(frozen=True, slots=True)
class Event:
    """Progress for a reader: a job has started, goes on, or ended.

    trials: of the job. played: those that have ended. seconds: since the job began. places: nodes
    and GPUs that are at it, beyond this process tree. note: something to be told of the places
    themselves; then the rest is empty.
    """

    case: str
    lane: str
    trials: int
    ended: bool
    detail: str = ""
    played: int = 0
    seconds: float = 0.0
    places: tuple[str, ...] = ()
    note: str = ""


Told = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Gathered:
    """Results by case and lane, one for each step of the plan. places: where they came from, beyond
    this process tree. avoided: places that were not used any more, each with the reason."""

    results: Results
    places: tuple[Mapping[str, Any], ...] = ()
    avoided: tuple[Mapping[str, str], ...] = ()

    def __or__(self, other: Gathered) -> Gathered:
        """Both together."""
        return Gathered(
            self.results | other.results,
            tuple(added([*self.places, *other.places])),
            (*self.avoided, *other.avoided),
        )


@dataclass(slots=True)
class Progress:
    """The jobs at work: what a moment of a play means for one of them."""

    told: Told
    trials: dict[Key, int] = field(default_factory=dict)
    done: dict[Key, int] = field(default_factory=dict)
    began: dict[Key, float] = field(default_factory=dict)
    at: dict[str, tuple[Key, str]] = field(default_factory=dict)  # id of a task -> where it is
    avoided: list[Mapping[str, str]] = field(default_factory=list)

    def begin(self, key: Key, trials: int, done: int) -> None:
        """A job of so many trials, of which some are known already."""
        self.trials[key], self.done[key] = trials, done

    def heard(self, key: Key, moment: Moment, working: int = 0) -> None:
        """A moment of a task of a job. working: its trials that have ended meanwhile."""
        task, place = moment.task, moment.place
        if task is None:
            return
        if moment.state == "started":
            self.began.setdefault(key, time.monotonic())
            self.at[task.id] = key, _said(moment)
        elif moment.state in ("again", "ended"):
            self.at.pop(task.id, None)
        if moment.state == "again":
            where = f" on {_said(moment)}" if place else ""
            self.note(f"{task.label}{where}: {moment.detail}; tried again")
        elif moment.state != "ended":
            self.tell(key, working=working)

    def tell(self, key: Key, *, ended: bool = False, detail: str = "", working: int = 0) -> None:
        """Show how far a job is."""
        seconds = time.monotonic() - self.began.get(key, time.monotonic())
        places = tuple(sorted({where for at, where in self.at.values() if at == key and where}))
        done = self.done[key] + working
        self.told(Event(*key, self.trials[key], ended, detail, done, seconds, places))

    def of_places(self, moment: Moment) -> None:
        """A moment that is about places and no task."""
        if moment.state == "avoided":
            place, _, reason = moment.detail.partition(": ")
            self.avoided.append({"place": place, "reason": reason})
            self.note(f"{place} is avoided: {reason}")
        else:
            self.note(moment.detail)

    def note(self, text: str) -> None:
        """Tell of the places themselves."""
        self.told(Event("", "", 0, ended=False, note=text))


@contextmanager
def somewhere(choice: Choice, jobs: int, folder: Path, told: Told) -> Iterator[Where]:
    """Where the lanes without a device are played; on a cluster those on GPUs too."""

    def heard(moment: Moment) -> None:
        if moment.detail:
            told(Event("", "", 0, ended=False, note=moment.detail))

    if not choice.spread:
        choice = Choice(max(1, min(jobs, os.cpu_count() or 1)))
    with place_of(choice, folder, heard) as where:
        yield where


def play_jobs(jobs: Sequence[Job], where: Where, cut: bool, told: Told) -> Gathered:
    """The results of lanes without a device. cut: into pieces that run apart."""
    progress = Progress(told)
    parts: dict[Key, list[tuple[Piece, Played | None]]] = {}
    by_task: dict[str, tuple[Key, int]] = {}
    for job in jobs:
        key = job.case.case.id, job.lane
        before = taken_over(whole(job))
        made = pieces(job) if cut and before is None else [whole(job)]
        parts[key] = [(one, before or taken_over(one)) for one in made]
        for number, (piece, known) in enumerate(parts[key]):
            if known is None:
                by_task[piece.task.id] = key, number
        ready = sum(len(piece.steps) for piece, known in parts[key] if known is not None)
        progress.begin(key, len(job.plan.steps), ready)
        progress.tell(key)
    results: Results = {}
    there: list[Mapping[str, Any]] = []
    jobs_by_key = {(job.case.case.id, job.lane): job for job in jobs}

    def settle(key: Key) -> None:
        whole_parts = [(piece, known) for piece, known in parts[key] if known is not None]
        if len(whole_parts) < len(parts[key]):
            return
        results[key] = together(jobs_by_key[key], whole_parts)
        there.extend(place for _, known in whole_parts for place in known.places)
        why = next((r.reason for r in results[key] if r.reason), "")
        failed = not all(known.whole for _, known in whole_parts)
        progress.tell(key, ended=True, detail=why if failed else "")

    def heard(moment: Moment) -> None:
        if moment.task is None:
            progress.of_places(moment)
            return
        key, number = by_task[moment.task.id]
        piece, _ = parts[key][number]
        at_work = moment.state == "working"
        working = min(lines_of(piece.directory), len(piece.steps)) if at_work else 0
        progress.heard(key, moment, working)

    for key in parts:
        settle(key)
    tasks = [parts[key][number][0].task for key, number in by_task.values()]
    with closing(play(tasks, where, heard)) as playing:
        for done in playing:
            key, number = by_task[done.task.id]
            piece, _ = parts[key][number]
            parts[key][number] = piece, left_by(piece, done)
            progress.done[key] += len(piece.steps)
            progress.tell(key)
            settle(key)
    return Gathered(results, tuple(added(there)), tuple(progress.avoided))


def play_devices(
    lanes: Sequence[DeviceLane], asked: Asked, folder: Path, remote: Where | None, told: Told
) -> Gathered:
    """The results of GPU lanes. folder: of the run. remote: a cluster; None: the GPUs of this
    machine.

    Once a GPU is not as it was before, nothing more is started on it, and what was gathered is
    kept.
    """
    if not lanes:
        return Gathered({})
    trials, known = device_trials(lanes, asked)
    if remote is not None:
        return _played(lanes, trials, known, remote, told)
    try:
        cards = cards_here(asked)
    except LaneError as error:
        why = said_by(error)
        return Gathered({one.key: _all_skipped(one, why) for one in lanes})
    unable = {one.key: why for one in lanes if (why := why_not_here(one, cards, folder))}
    for one in trials:
        if one.lane.key in unable:
            known[one.lane.key][one.at] = skipped(one.trial, unable[one.lane.key])
    able = [one for one in trials if one.lane.key not in unable]
    with place_of(Choice(min(asked.jobs, len(cards.gpus))), folder, cards=cards) as where:
        return _played(lanes, able, known, where, told)


def _played(
    lanes: Sequence[DeviceLane],
    trials: Sequence[DeviceTrial],
    known: Mapping[Key, Mapping[int, TrialResult]],
    where: Where,
    told: Told,
) -> Gathered:
    """known: the results of steps that have no trial here."""
    by_task = {one.task.id: one for one in trials}
    waiting: dict[Key, int] = {}
    for one in trials:
        waiting[one.lane.key] = waiting.get(one.lane.key, 0) + 1
    progress = Progress(told)
    for key, count in waiting.items():
        progress.begin(key, count + len(known[key]), len(known[key]))
    found: dict[Key, dict[int, TrialResult]] = {one.key: dict(known[one.key]) for one in lanes}
    places: dict[str, Any] = {}

    def heard(moment: Moment) -> None:
        if moment.task is None:
            progress.of_places(moment)
            return
        progress.heard(by_task[moment.task.id].lane.key, moment)

    with closing(play([one.task for one in trials], where, heard)) as playing:
        for done in playing:
            one = by_task[done.task.id]
            key = one.lane.key
            found[key][one.at] = result_of(one, done)
            if not done.lost:
                places[done.task.id] = done.place
            progress.done[key] += 1
            waiting[key] -= 1
            progress.tell(key, ended=not waiting[key], detail=done.lost if not waiting[key] else "")
    results = {
        one.key: tuple(found[one.key][at] for at in range(len(one.plan.steps))) for one in lanes
    }
    there = told_of(places)
    alone = len(there) == 1 and there[0]["node"] == HERE
    return Gathered(results, () if alone else tuple(there), tuple(progress.avoided))


def _all_skipped(one: DeviceLane, reason: str) -> tuple[TrialResult, ...]:
    return tuple(skipped(trial, reason) for trial in one.plan.trials(one.lane))


def _said(moment: Moment) -> str:
    """A place for a reader; "" for this process tree without a GPU."""
    place = moment.place
    if place is None or (place.node == HERE and not place.gpus):
        return ""
    node = "" if place.node == HERE else f"node {place.node}"
    gpus = ", ".join(f"GPU {gpu[:12]}" for gpu in place.gpus)
    return " ".join(word for word in (node, gpus) if word)
