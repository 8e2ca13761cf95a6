"""Logs of one task, read where it runs: the other side of `chunks.py`."""

from __future__ import annotations

import json
from pathlib import Path

from ..execution.entries import Work
from ..execution.task import Ended
from .chunks import ANSWER, to_json
from .cluster import look


def answer(work: Work) -> Ended:
    """Read and diagnose the logs of a job and leave what they say.

    A machine that does not have the files as home has them is no place for it.
    """
    job = json.loads((work.directory / "job.json").read_text(encoding="utf-8"))
    found = []
    for row in job["logs"]:
        path = work.directory / row["at"] if job["sent"] else Path(row["at"])
        if not job["sent"] and (why := _other(path, row["size"])):
            return Ended(declined=why)
        found.append(to_json(look(str(path), row["name"])))
        work.told()
    (work.directory / ANSWER).write_text(json.dumps(found), encoding="utf-8")
    return Ended()


def _other(path: Path, size: int) -> str:
    """Why a file is not the one that home has, "" if it may be. One that grows is still it."""
    try:
        here = path.stat().st_size
    except OSError as error:
        return f"{path} is not there: {error.strerror}"
    return f"{path} has {here:,} bytes there, {size:,} at home" if here < size else ""
