"""One trial in a GPU lane, on the GPU that is held for it; whether the GPU is well afterwards."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import LaneError
from ..lanes.gpu import ill
from ..lanes.gpu_trial import Surroundings, usable
from ..lanes.gpu_trial import play as play_trial
from ..lanes.process import result_from
from ..records import AFTERWARDS, Evidence, Seen, Status, Trial, TrialResult, to_json
from ..sanitizer.tool import Tool
from ..watch.gpus import Gpu, gpus
from .entries import Work
from .laying_out import JOB
from .task import Ended

OUTCOME = "outcome.json"
DECIDED = (Status.FAULT, Status.CLEAN)


def play(work: Work) -> Ended:
    """Play the trial of job.json: `trial` (as JSON), `scenario`, `owners`, `settings`, `keep`,
    `number`. Its result is written to outcome.json.

    A GPU that is not well afterwards is not used again; a trial that decided something there still
    counts, and one that did not is INFRA.
    """
    job = json.loads((work.directory / JOB).read_text(encoding="utf-8"))
    trial = Trial(**{**job["trial"], "expected": Status(job["trial"]["expected"])})
    (name,) = work.gpus[:1]
    found = gpus()
    gpu = next((one for one in found.gpus if name in (one.uuid, str(one.index))), None)
    if gpu is None:
        said = f"the driver does not show GPU {name}" + (f" ({found.reason})" * bool(found.reason))
        return Ended(infra=said, unwell=said)
    try:
        tool = _tool(trial.lane, work.shared / "tool")
    except LaneError as error:
        return Ended(declined=f"{error}" + (f" ({error.hint})" if error.hint else ""))
    around = Surroundings(
        gpu, work.shared / "kernels", work.timeout, work.children, bool(job["keep"])
    )
    result = play_trial(trial, job, work.directory, around, tool, int(job["number"]), work.told)
    _keep(work.directory, result)
    why = ill(_at_first(work.shared, gpu), gpus)
    if not why:
        return Ended(seconds=result.seconds)
    evidence = (*result.evidence, Evidence(AFTERWARDS, Seen.SEEN, why))
    _keep(work.directory, replace(result, evidence=evidence))
    said = f"after {trial.case}, {trial.variant} in lane {trial.lane}, {why}"
    infra = "" if result.status in DECIDED else f"{said}: {result.reason or result.status}"
    return Ended(seconds=result.seconds, infra=infra, unwell=said)


def _keep(directory: Path, result: TrialResult) -> None:
    (directory / OUTCOME).write_text(json.dumps(to_json(result)), encoding="utf-8")


def outcome(directory: Path, trial: Trial) -> TrialResult:
    """What `play` left of a trial; unknown where that cannot be read."""
    try:
        text = (directory / OUTCOME).read_text(encoding="utf-8")
        return result_from(trial, json.loads(text))
    except (OSError, ValueError) as error:
        return TrialResult(trial, Status.UNKNOWN, reason=f"its result cannot be read: {error}")


@cache
def _tool(lane: str, scratch: Path) -> Tool | None:
    return usable(lane, os.environ, scratch)


def _at_first(shared: Path, gpu: Gpu) -> Gpu:
    """How a GPU was before the first trial of the play: what does not come back, little by little,
    is seen."""
    path = shared / "gpus" / f"{gpu.uuid or gpu.index}.json"
    try:
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Gpu(**{**known, "processes": None})
    except (OSError, ValueError, TypeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(gpu) | {"processes": None}), encoding="utf-8")
        return gpu
