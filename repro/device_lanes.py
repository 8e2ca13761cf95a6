"""The GPU lanes of a run: a task a trial, a GPU a task, as long as a GPU is well. Where a lane
cannot run, its trials are skipped and say in one line why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import __version__
from .case import Case
from .errors import LaneError
from .execution.cards import Cards, open_cards
from .execution.digest import code_digest
from .execution.task import Done, Fate, Needs, Task
from .job import LEFT, told_of
from .plan import Plan, Step
from .records import Evidence, Seen, Status, Trial, TrialResult, to_json
from .store import write_json

HYPOTHESES = "hypotheses are asked of the lanes that need no device"


@dataclass(frozen=True, slots=True)
class Asked:
    """device: a GPU as NVML counts; None: the first that may be used. force: although others
    compute there. keep: core dumps stay. timeout: seconds of a trial. jobs: GPUs at once."""

    device: int | None
    force: bool
    keep: bool
    timeout: float
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class DeviceLane:
    """A case in a GPU lane. directory: of this lane in the run."""

    case: Case
    plan: Plan
    lane: str
    directory: Path

    @property
    def key(self) -> tuple[str, str]:
        """By which its results are known."""
        return self.plan.case, self.lane

    @property
    def needs(self) -> Needs:
        """What a GPU must be for it."""
        return needs(self.case)


@dataclass(frozen=True, slots=True)
class DeviceTrial:
    """One trial of a GPU lane and its task."""

    lane: DeviceLane
    at: int
    trial: Trial
    task: Task


def no_device_lane() -> str:
    """Why no GPU lane can run here, in one line; "" if one can."""
    from .watch.nvml import devices

    found = devices()
    if found.reason:
        return found.reason
    from .lanes.gpu import choose
    from .lanes.gpu_trial import usable
    from .watch.gpus import gpus

    try:
        choose(gpus(), None, os.environ, force=False)
        usable("plain", os.environ, Path())
    except LaneError as error:
        return said_by(error)
    return ""


def needs(case: Case) -> Needs:
    """What a case requires of a place, of which GPU lanes alone have to take notice."""
    asked = case.requires
    if asked is None:
        return Needs(gpus=1)
    return Needs(
        gpus=asked.gpus,
        gpu_types=asked.gpu,
        free_memory=asked.free_bytes,
        driver=asked.driver or "",
    )


def cards_here(asked: Asked) -> Cards:
    """The GPUs of this machine for the trials of a run; LaneError says why there is none."""
    from .watch.gpus import gpus
    from .watch.nvml import devices

    found = devices()
    if found.reason:
        raise LaneError(found.reason)
    return open_cards(gpus(), asked.device, os.environ, asked.force, asked.jobs)


def why_not_here(one: DeviceLane, cards: Cards, folder: Path) -> str:
    """Why a lane cannot run on the GPUs of this machine, "" if it can. folder: of the run."""
    from .lanes.gpu_trial import usable

    try:
        usable(one.lane, os.environ, folder / "tool")
    except LaneError as error:
        return said_by(error)
    return cards.unmet(one.needs)


def device_trials(
    lanes: Sequence[DeviceLane], asked: Asked
) -> tuple[list[DeviceTrial], dict[tuple[str, str], dict[int, TrialResult]]]:
    """The trials to play, and by lane and step what is skipped or was played before."""
    to_play: list[DeviceTrial] = []
    known: dict[tuple[str, str], dict[int, TrialResult]] = {}
    number = 0
    for one in lanes:
        mine = known.setdefault(one.key, {})
        trials = one.plan.trials(one.lane)
        for at, (step, trial) in enumerate(zip(one.plan.steps, trials, strict=True)):
            if left := _left(step, one.lane):
                mine[at] = skipped(trial, left)
                continue
            made = DeviceTrial(one, at, trial, _task(one, at, step, trial, asked, number))
            number += 1
            to_play.append(made)
    return to_play, known


def result_of(one: DeviceTrial, done: Done) -> TrialResult:
    """What came of a trial's task; kept with what it left."""
    from .execution.device import outcome

    if done.lost:
        infra = any(tried.fate is Fate.INFRA for tried in done.tried)
        if not infra:
            return skipped(one.trial, done.lost)
        evidence = (Evidence("process", Seen.UNOBSERVABLE, done.lost),)
        return TrialResult(one.trial, Status.UNKNOWN, evidence=evidence, reason=done.lost)
    write_json(
        done.task.directory / "ending.json",
        {"places": told_of({done.task.id: done.place}), "left": done.left},
    )
    result = outcome(done.task.directory, one.trial)
    if done.left:
        result = replace(result, evidence=(*result.evidence, Evidence(LEFT, Seen.SEEN, done.left)))
    return result


def skipped(trial: Trial, reason: str) -> TrialResult:
    """A trial that was not played."""
    return TrialResult(trial, Status.SKIPPED, reason=reason)


def said_by(error: LaneError) -> str:
    """An error with its hint in a line."""
    return f"{error}" + (f" ({error.hint})" if error.hint else "")


def _task(one: DeviceLane, at: int, step: Step, trial: Trial, asked: Asked, number: int) -> Task:
    job = {
        "trial": to_json(trial),
        "scenario": one.case.scenario,
        "owners": dict(one.case.owners),
        "settings": dict(step.settings),
        "keep": asked.keep,
        "number": number,
        "version": __version__,
        "code": code_digest(),
    }
    return Task(
        f"{one.plan.case}/{one.lane}/{at}",
        "device",
        job,
        one.directory / f"{at:03d}-{step.variant}",
        asked.timeout,
        replace(one.needs, force=asked.force),
        label=f"{one.plan.case} in {one.lane}",
    )


def _left(step: Step, lane: str) -> str:
    return HYPOTHESES if step.wanted.open else step.left_to(lane)
