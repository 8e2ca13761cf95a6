"""The directory of a task, before it is begun: its job and its files. The same at home and on a
node."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

JOB = "job.json"
SCRATCH = "scratch"  # of the child, and not for home


def job_text(job: Mapping[str, Any]) -> str:
    """job.json as it is written, everywhere."""
    return json.dumps(job)


def plain(name: str) -> str:
    """A relative name that stays where it is; ValueError for any other."""
    path = PurePosixPath(name)
    if not name or "\0" in name or "\\" in name or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"not a plain relative name: {name!r}")
    return str(path)


def lay_out(directory: Path, job: str, files: Mapping[str, bytes]) -> None:
    """Make `directory` anew with job.json and files. ValueError for a name that leads out of it."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    for name, content in files.items():
        target = directory / plain(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    (directory / JOB).write_text(job, encoding="utf-8")
