"""The GPU lanes of a run: one trial after the other, each in a process of its own, as long as the
GPU is well. Where a lane cannot run, its trials are skipped and say in one line why."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .case import Case
from .errors import LaneError
from .lanes.process import Children
from .plan import Plan, Step
from .records import Status, TrialResult

HYPOTHESES = "hypotheses are asked of the lanes that need no device"
Told = Callable[[str, str, int, bool, str, int, float], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """device: a GPU as NVML counts; None: the first that may be used. force: although others
    compute there. keep: core dumps stay. timeout: seconds of a trial."""

    device: int | None
    force: bool
    keep: bool
    timeout: float


@dataclass(frozen=True, slots=True)
class DeviceLane:
    """A case in a GPU lane. directory: of this lane in the run."""

    case: Case
    plan: Plan
    lane: str
    directory: Path


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
        return _said(error)
    return ""


def play_device_lanes(
    lanes: Sequence[DeviceLane], asked: Asked, folder: Path, children: Children, told: Told
) -> dict[tuple[str, str], tuple[TrialResult, ...]]:
    """Results by case and lane, one for each step of the plan. folder: of the run.

    Once the GPU is not as it was before, nothing more is started, and what was gathered is kept.
    """
    from .watch.nvml import devices

    if not lanes:
        return {}
    found = devices()
    if found.reason:
        return {_key(one): _skipped(one, found.reason) for one in lanes}
    return _on_a_gpu(lanes, asked, folder, children, told)


def _on_a_gpu(
    lanes: Sequence[DeviceLane], asked: Asked, folder: Path, children: Children, told: Told
) -> dict[tuple[str, str], tuple[TrialResult, ...]]:
    from .lanes.gpu import choose, ill
    from .lanes.gpu_trial import Surroundings, play, usable
    from .watch.gpus import gpus

    try:
        gpu = choose(gpus(), asked.device, os.environ, asked.force)
    except LaneError as error:
        return {_key(one): _skipped(one, _said(error)) for one in lanes}
    around = Surroundings(gpu, folder / "kernels", asked.timeout, children, asked.keep)
    stopped = ""
    results: dict[tuple[str, str], tuple[TrialResult, ...]] = {}
    number = 0
    for one in lanes:
        trials = one.plan.trials(one.lane)
        try:
            tool = usable(one.lane, os.environ, folder / "tool")
        except LaneError as error:
            results[_key(one)] = _skipped(one, stopped or _said(error))
            continue
        told(one.plan.case, one.lane, len(trials), False, "", 0, 0.0)
        began, mine = time.monotonic(), list[TrialResult]()
        for at, (step, trial) in enumerate(zip(one.plan.steps, trials, strict=True)):
            left = stopped or _left(step, one.lane)
            if left or children.stopped:
                reason = left or "the run was interrupted"
                mine.append(TrialResult(trial, Status.SKIPPED, reason=reason))
                continue
            job = {
                "scenario": one.case.scenario,
                "owners": dict(one.case.owners),
                "settings": dict(step.settings),
            }
            where = one.directory / f"{at:03d}-{step.variant}"
            mine.append(play(trial, job, where, around, tool, number))
            number += 1
            told(one.plan.case, one.lane, len(trials), False, "", at + 1, time.monotonic() - began)
            if why := ill(gpu, gpus):
                stopped = f"stopped: after {step.variant} in lane {one.lane} {why}"
        told(one.plan.case, one.lane, len(trials), True, stopped, len(trials), 0.0)
        results[_key(one)] = tuple(mine)
    return results


def _left(step: Step, lane: str) -> str:
    return HYPOTHESES if step.wanted.open else step.left_to(lane)


def _key(one: DeviceLane) -> tuple[str, str]:
    return one.plan.case, one.lane


def _skipped(one: DeviceLane, reason: str) -> tuple[TrialResult, ...]:
    return tuple(
        TrialResult(trial, Status.SKIPPED, reason=reason) for trial in one.plan.trials(one.lane)
    )


def _said(error: LaneError) -> str:
    return f"{error}" + (f" ({error.hint})" if error.hint else "")
