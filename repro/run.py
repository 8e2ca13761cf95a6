"""The main loop of `specrepro run`: plan, play each case and lane in other processes, judge.

Results are read back from the files that the children left, so that a run that was killed can be
resumed from what is whole.
"""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import store
from .case import Case, LoadedCase, load_case, override
from .device_lanes import Asked, DeviceLane
from .errors import ClusterError, Exit, InterruptedRunError, UsageError, worst
from .escape import quoted
from .execution.choice import Choice
from .hypotheses import weigh
from .job import Job
from .judge import Judgement, judge
from .lanes.catalog import CATALOG
from .plan import Plan, plan
from .records import Cause, RunVerdict
from .run_record import case_record, run_record
from .trials import Event, Told, play_devices, play_jobs, somewhere

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
    jobs: int | None = None
    ray: str | None = None

    @property
    def choice(self) -> Choice:
        """Where its trials run."""
        return Choice(self.jobs, self.ray)


__all__ = ["TIMEOUT", "Event", "RunReport", "Selection", "resume", "run"]


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
    told: Told = lambda event: None,
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
            "jobs": selection.jobs,
            "ray": selection.ray,
        },
    }
    path = store.create(folder, "run", asked)
    for case in cases:
        (path / case.case.id).mkdir()
        shutil.copyfile(case.path, path / case.case.id / "case.yaml")
    with store.held(path):
        return _execute(path, cases, plans, selection, told)


def resume(path: Path, told: Told = lambda event: None, choice: Choice | None = None) -> RunReport:
    """Go on with a run that was cut off; what is whole of it is not run again.

    choice: where, if it is not where it was begun. UsageError for a run that is finished, or that
    another process is at.
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
        if choice is not None:
            selection = replace(selection, jobs=choice.jobs, ray=choice.ray)
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
    told: Told,
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
    devices = [
        DeviceLane(effective, planned, lane, path / case.case.id / lane)
        for case, (effective, planned) in zip(cases, plans, strict=True)
        for lane in planned.lanes
        if CATALOG[lane].device
    ]
    asked = Asked(
        selection.device, selection.force, selection.keep, selection.timeout, selection.jobs or 1
    )
    try:
        with somewhere(selection.choice, len(jobs), path, told) as where:
            gathered = play_jobs(jobs, where, selection.choice.spread, told)
            if selection.ray is not None:
                gathered |= play_devices(devices, asked, path, where, told)
        if selection.ray is None:
            gathered |= play_devices(devices, asked, path, None, told)
    except KeyboardInterrupt:
        raise InterruptedRunError("interrupted", hint=_resume(path)) from None
    except ClusterError as error:
        hint = f"{error.hint}; {_resume(path)} goes on with it" if error.hint else _resume(path)
        raise ClusterError(error.message, hint=hint) from error
    records, statuses = [], []
    for case, (effective, planned) in zip(cases, plans, strict=True):
        results = {lane: gathered.results[case.case.id, lane] for lane in planned.lanes}
        # a device's silence is no outcome of an experiment
        told_of = {lane: found for lane, found in results.items() if not CATALOG[lane].device}
        weighed = weigh(effective, planned, told_of)
        judgement: Judgement = judge(planned, results, Cause(case.case.cause), weighed)
        statuses.append(STATUS[judgement.verdict])
        records.append(case_record(case, effective, planned, results, judgement, weighed))
    record = run_record(path, started, time.monotonic() - clock, records, gathered.places)
    record["avoided"] = list(gathered.avoided)
    store.finish(path, record)
    return RunReport(record, path, worst(statuses))


def _resume(path: Path) -> str:
    return f"specrepro run --resume {path.name} --runs {shlex.quote(str(path.parent))}"
