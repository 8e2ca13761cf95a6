"""A trial in a process of its own, wherever that runs: the other side of `crew.py`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..check.asking import answered
from ..check.builds import Builds
from ..check.depth import Opener
from ..execution.entries import Work
from ..execution.task import Ended
from .repository import Repository
from .trials import PROJECT, LineBuilds


def answer(work: Work) -> Ended:
    """Try the build of a job and leave its record."""
    return answered(work, _opener)


def _opener(builds: Builds, job: Mapping[str, Any]) -> Opener:
    repository = Repository(Path(job["repo"])) if job["repo"] else None
    return LineBuilds(builds, repository, PROJECT)
