"""The main loop of `specrepro run`: plan, execute each case and lane in its own process, judge.

A CPU lane plays all trials of a case in one child. Results are read back from the files that the
children left, so that a run that was killed can be resumed from what is whole.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import store
from .case import Case, LoadedCase, load_case, override
from .device_lanes import Asked, DeviceLane, play_device_lanes
from .errors import Exit, InterruptedRunError, UsageError, worst
from .escape import quoted
from .hypotheses import weigh
from .job import Job, perform
from .judge import Judgement, judge
from .lanes.catalog import CATALOG
from .lanes.process import Children, read_results
from .plan import Plan, plan
from .records import Cause, RunVerdict, TrialResult
from .run_record import case_record, run_record

TIMEOUT = 600.0  # seconds of one child
CASE_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

STATUS = {
    RunVerdict.REPRODUCED: Exit.OK,
    RunVerdict.NOT_REPRODUCED: Exit.FAULT,
    RunVerdict.INCONCLUSIVE: Exit.UNTESTABLE,
}


@dataclass(frozen=True, slots=True)
class Selection:
    """What was asked of the cases; kept with the run so that it can be resumed."""

    overrides: Mapping[str, str] = field(default_factory=dict)
    variants: Sequence[str] = ()
    lanes: Sequence[str] = ()
    sweep: bool = False
    stop_at_first: bool = False
    timeout: float = TIMEOUT
    device: int | None = None
    force: bool = False
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Progress for a reader: a job has started, goes on, or ended.

    trials: of the job. played: those that have ended. seconds: since the job began.
    """

    case: str
    lane: str
    trials: int
    ended: bool
    detail: str = ""
    played: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run came to. `record` is specrepro/run@1, as stored."""

    record: Mapping[str, Any]
    path: Path
    status: Exit


def run(
    cases: Sequence[LoadedCase],
    selection: Selection,
    folder: Path,
    told: Callable[[Event], None] = lambda event: None,
) -> RunReport:
    """Run cases as selected and store the result under `folder`.

    UsageError before anything is started, if the selection does not fit a case.
    """
    plans = [_planned(case, selection) for case in cases]
    asked = {
        "cases": [case.case.id for case in cases],
        "selection": {
            "overrides": dict(selection.overrides),
            "variants": list(selection.variants),
            "lanes": list(selection.lanes),
            "sweep": selection.sweep,
            "stop_at_first": selection.stop_at_first,
            "timeout": selection.timeout,
            "device": selection.device,
            "force": selection.force,
            "keep": selection.keep,
        },
    }
    path = store.create(folder, "run", asked)
    for case in cases:
        (path / case.case.id).mkdir()
        shutil.copyfile(case.path, path / case.case.id / "case.yaml")
    with store.held(path):
        return _execute(path, cases, plans, selection, told)


def resume(path: Path, told: Callable[[Event], None] = lambda event: None) -> RunReport:
    """Go on with a run that was cut off; jobs whose results are whole are not run again.

    UsageError for a run that is finished, or that another process is at.
    """
    if (path / store.RESULT).is_file():
        raise UsageError(
            f"run {quoted(path.name)} is finished", hint=f"specrepro runs show {path.name}"
        )
    asked = store.request(path)
    if asked.get("command") != "run":
        raise UsageError(f"{quoted(path.name)} is not a run of cases")
    try:
        selection = Selection(**asked["selection"])
        names = [name for name in asked["cases"] if CASE_ID.fullmatch(name)]
    except (KeyError, TypeError) as error:
        raise UsageError(f"the request of run {quoted(path.name)} cannot be read") from error
    if len(names) != len(asked["cases"]):
        raise UsageError(f"the request of run {quoted(path.name)} names what is no case")
    cases = [load_case(path / name / "case.yaml") for name in names]
    with store.held(path):
        return _execute(path, cases, [_planned(c, selection) for c in cases], selection, told)


def _planned(case: LoadedCase, selection: Selection) -> tuple[Case, Plan]:
    effective = override(case.case, selection.overrides)
    return effective, plan(
        effective,
        case.case,
        sweep=selection.sweep,
        variants=selection.variants,
        lanes=selection.lanes,
    )


def _execute(
    path: Path,
    cases: Sequence[LoadedCase],
    plans: Sequence[tuple[Case, Plan]],
    selection: Selection,
    told: Callable[[Event], None],
) -> RunReport:
    started, clock = store.now(), time.monotonic()
    jobs = [
        Job(
            case,
            effective,
            planned,
            lane,
            path / case.case.id / lane,
            selection.stop_at_first,
            selection.timeout,
        )
        for case, (effective, planned) in zip(cases, plans, strict=True)
        for lane in planned.lanes
        if not CATALOG[lane].device
    ]
    # the lanes of a case that need longest first, so that no core waits at the end
    jobs.sort(key=lambda job: not CATALOG[job.lane].kernels)
    outcomes = _play(jobs, told, path)
    outcomes |= _play_devices(cases, plans, selection, told, path)
    records, statuses = [], []
    for case, (effective, planned) in zip(cases, plans, strict=True):
        results = {lane: outcomes[case.case.id, lane] for lane in planned.lanes}
        # a device's silence is no outcome of an experiment
        told_of = {lane: found for lane, found in results.items() if not CATALOG[lane].device}
        weighed = weigh(effective, planned, told_of)
        judgement: Judgement = judge(planned, results, Cause(case.case.cause), weighed)
        statuses.append(STATUS[judgement.verdict])
        records.append(case_record(case, effective, planned, results, judgement, weighed))
    record = run_record(path, started, time.monotonic() - clock, records)
    store.finish(path, record)
    return RunReport(record, path, worst(statuses))


def _play(
    jobs: Sequence[Job], told: Callable[[Event], None], path: Path
) -> dict[tuple[str, str], tuple[TrialResult, ...]]:
    children = Children()

    def one(job: Job) -> tuple[tuple[str, str], tuple[TrialResult, ...]]:
        name = job.case.case.id
        trials = job.plan.trials(job.lane)
        told(Event(name, job.lane, len(trials), ended=False))
        began = time.monotonic()

        def working(played: int) -> None:
            seconds = time.monotonic() - began
            told(Event(name, job.lane, len(trials), ended=False, played=played, seconds=seconds))

        ending = perform(job, children, working)
        results = read_results(job.directory, trials, ending)
        told(Event(name, job.lane, len(trials), ended=True, detail=ending.reason))
        return (name, job.lane), results

    workers = max(1, min(len(jobs), os.cpu_count() or 1))
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(one, job) for job in jobs]
        try:
            return dict(future.result() for future in futures)
        except KeyboardInterrupt:
            children.stop()
            raise _interrupted(path) from None


def _play_devices(
    cases: Sequence[LoadedCase],
    plans: Sequence[tuple[Case, Plan]],
    selection: Selection,
    told: Callable[[Event], None],
    path: Path,
) -> dict[tuple[str, str], tuple[TrialResult, ...]]:
    """The GPU lanes, after the others: nothing else of ours then works beside them."""
    lanes = [
        DeviceLane(effective, planned, lane, path / case.case.id / lane)
        for case, (effective, planned) in zip(cases, plans, strict=True)
        for lane in planned.lanes
        if CATALOG[lane].device
    ]
    asked = Asked(selection.device, selection.force, selection.keep, selection.timeout)
    children = Children()

    def event(
        case: str, lane: str, trials: int, ended: bool, detail: str, played: int, seconds: float
    ) -> None:
        told(Event(case, lane, trials, ended, detail, played, seconds))

    try:
        return play_device_lanes(lanes, asked, path, children, event)
    except KeyboardInterrupt:
        children.stop()
        raise _interrupted(path) from None


def _interrupted(path: Path) -> InterruptedRunError:
    runs = shlex.quote(str(path.parent))
    return InterruptedRunError(
        "interrupted", hint=f"specrepro run --resume {path.name} --runs {runs}"
    )
