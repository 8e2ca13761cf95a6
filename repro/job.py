"""One child's work of a run: a case in a lane. Written before the child starts, with all that its
result depends on, so that a resumed run takes over what is whole, ended well, and was made by this
very code, and nothing else."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .. import __version__
from .case import Case, LoadedCase
from .lanes.process import Children, Ending, complete, played, run_child
from .plan import Plan
from .store import write_json

MEMORY_LIMIT = 4 << 30  # bytes of address space of a CPU lane's child
CODE = ("*.py", "*.ptx", "*.cu", "*.json")  # what decides a result, under repro/ and kernels/


@dataclass(frozen=True, slots=True)
class Job:
    """One child: a case in a lane."""

    case: LoadedCase
    effective: Case
    plan: Plan
    lane: str
    directory: Path
    stop_at_first: bool
    timeout: float


def perform(
    job: Job, children: Children, told: Callable[[int], None] = lambda played: None
) -> Ending:
    """Run the child of a job, unless an earlier one left its whole result and ended well.

    `told` hears, while the child works, how many of its trials have ended.
    """
    text = json.dumps(_described(job))
    before, ended = job.directory / "job.json", job.directory / "ending.json"
    same = before.is_file() and before.read_text(encoding="utf-8") == text
    if same and _well(ended) and complete(job.directory, len(job.plan.steps)):
        return Ending("", False, 0.0)
    if job.directory.exists():
        shutil.rmtree(job.directory)
    job.directory.mkdir(parents=True)
    before.write_text(text, encoding="utf-8")
    ending = run_child(
        job.directory, job.timeout, children, told=lambda: told(played(job.directory))
    )
    write_json(ended, {"reason": ending.reason, "timed_out": ending.timed_out})
    return ending


def _described(job: Job) -> dict[str, Any]:
    return {
        "case": job.case.case.id,
        "lane": job.lane,
        "version": __version__,
        "code": code_digest(),
        "scenario": job.effective.scenario,
        "owners": dict(job.effective.owners),
        "stop_at_first": job.stop_at_first,
        "memory_limit": MEMORY_LIMIT,
        "trials": [
            {
                "variant": step.variant,
                "point": dict(step.point),
                "settings": dict(step.settings),
                "left_to": step.left_to(job.lane),
            }
            for step in job.plan.steps
        ],
    }


@cache
def code_digest() -> str:
    """sha256 over the code and kernels of this installation, in hex."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for folder in ("repro", "kernels"):
        for path in sorted(p for kind in CODE for p in (root / folder).rglob(kind)):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _well(ended: Path) -> bool:
    try:
        value = json.loads(ended.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(value, dict) and value.get("reason") == ""
