"""The trials of a CPU lane, or a stretch of them: one child plays them all."""

from __future__ import annotations

import json
from pathlib import Path

from ..lanes.process import complete, run_child
from .entries import Work
from .laying_out import JOB
from .task import Ended


def play(work: Work) -> Ended:
    """Run the child on job.json; how it ends is evidence about its trials."""
    ending = run_child(work.directory, work.timeout, work.children, told=work.told)
    if not ending.reason and not complete(work.directory, trials(work.directory)):
        return Ended(infra="the result file is cut, although its child ended well")
    return Ended(ending.reason, ending.timed_out, ending.seconds)


def trials(directory: Path) -> int:
    """How many trials the job in a directory has."""
    return len(json.loads((directory / JOB).read_text(encoding="utf-8"))["trials"])
