"""A lane's work of a run: a case in a lane, whole or cut into pieces that may run apart.

What it depends on is written before it starts, so that a resumed run takes over what is whole,
ended well, and was made by this very code, and nothing else. The folder of a lane that was cut is,
once all its pieces are whole, what one child would have left.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from .case import Case, LoadedCase
from .execution.digest import code_digest
from .execution.policy import places
from .execution.task import HERE, Done, Place, Task
from .lanes.process import Ending, complete, mark, read_lines, read_results
from .plan import Plan, Step
from .records import Evidence, Seen, Status, Trial, TrialResult
from .store import write_json

MEMORY_LIMIT = 4 << 30  # bytes of address space of a CPU lane's child
PIECE = 8  # trials: a child takes as long to start as a few trials, and a lost node loses few
PIECES = "pieces"
LEFT = "files left on a node"


@dataclass(frozen=True, slots=True)
class Job:
    """A case in a lane. directory: of the lane in the run."""

    case: LoadedCase
    effective: Case
    plan: Plan
    lane: str
    directory: Path
    stop_at_first: bool
    timeout: float

    @property
    def name(self) -> str:
        """Case and lane, by which its tasks are named."""
        return f"{self.case.case.id}/{self.lane}"


@dataclass(frozen=True, slots=True)
class Piece:
    """The trials of a job from `first` on, which one child plays."""

    job: Job
    first: int
    steps: tuple[Step, ...]
    directory: Path

    @property
    def trials(self) -> list[Trial]:
        """Those of its steps, in the lane of the job."""
        return self.job.plan.trials(self.job.lane)[self.first : self.first + len(self.steps)]

    @property
    def described(self) -> dict[str, Any]:
        """What its child is told; all that its result depends on."""
        job = self.job
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
                for step in self.steps
            ],
        }

    @property
    def task(self) -> Task:
        """What is played of it."""
        name = f"{self.job.name}/{self.first}"
        label = f"{self.job.case.case.id} in {self.job.lane}"
        return Task(name, "lane", self.described, self.directory, self.job.timeout, label=label)


@dataclass(frozen=True, slots=True)
class Played:
    """What became of a piece: its results, whether they are whole, and where they came from."""

    results: tuple[TrialResult, ...]
    whole: bool
    places: tuple[Mapping[str, Any], ...]


def whole(job: Job) -> Piece:
    """All of a job as one piece, in the directory of the lane."""
    return Piece(job, 0, job.plan.steps, job.directory)


def pieces(job: Job, size: int = PIECE) -> list[Piece]:
    """A job in stretches of `size` trials. The same ones wherever they run, so that a resumed run
    takes them over elsewhere."""
    steps = job.plan.steps
    if len(steps) <= size:
        return [whole(job)]
    return [
        Piece(job, at, steps[at : at + size], job.directory / PIECES / f"{at:05d}")
        for at in range(0, len(steps), size)
    ]


def taken_over(piece: Piece) -> Played | None:
    """What an earlier child left of a piece, if it is whole and ended well; else None."""
    before, ended = piece.directory / "job.json", piece.directory / "ending.json"
    try:
        if before.read_text(encoding="utf-8") != json.dumps(piece.described):
            return None
        said = json.loads(ended.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    well = isinstance(said, dict) and said.get("reason") == ""
    if not well or not complete(piece.directory, len(piece.steps)):
        return None
    results = read_results(piece.directory, piece.trials, Ending("", False, 0.0))
    return Played(results, True, tuple(said.get("places", ())))


def played(piece: Piece, done: Done) -> Played:
    """What a task left of a piece; kept with it, so that it can be taken over."""
    if done.lost:
        evidence = (Evidence("process", Seen.UNOBSERVABLE, done.lost),)
        lost = [
            TrialResult(trial, Status.UNKNOWN, evidence=evidence, reason=done.lost)
            for trial in piece.trials
        ]
        return Played(tuple(lost), False, ())
    ended = done.ended
    ending = Ending(ended.reason, ended.timed_out, ended.seconds)
    from_there = told_of({done.task.id: done.place}, len(piece.steps))
    write_json(
        piece.directory / "ending.json",
        {"reason": ended.reason, "timed_out": ended.timed_out, "places": from_there},
    )
    results = read_results(piece.directory, piece.trials, ending)
    return Played(results, not ended.reason, tuple(from_there))


def told_of(results: Mapping[str, Place | None], trials: int = 1) -> list[dict[str, Any]]:
    """Where results came from, each of so many trials; nothing of what ran on no GPU here."""
    away = {k: p for k, p in results.items() if p and (p.node != HERE or p.gpus)}
    return [one | {"trials": one["trials"] * trials} for one in places(away)]


def together(job: Job, parts: Sequence[tuple[Piece, Played]]) -> tuple[TrialResult, ...]:
    """The results of a job in order. If all is whole, its directory becomes what one child leaves;
    if not, the pieces stay as they are, for they say what went wrong."""
    results = tuple(result for _, part in parts for result in part.results)
    cut = [piece for piece, _ in parts if piece.directory != job.directory]
    if cut and all(part.whole for _, part in parts):
        _merge(job, parts)
    return results


def _merge(job: Job, parts: Sequence[tuple[Piece, Played]]) -> None:
    directory = job.directory
    with (directory / "result.ndjson").open("w", encoding="utf-8") as out:
        for piece, _ in parts:
            lines, _ = read_lines(piece.directory / "result.ndjson")
            for line in lines:
                if "trial" in line:
                    line["trial"] += piece.first
                    out.write(json.dumps(line) + "\n")
        out.write(json.dumps(mark(len(job.plan.steps))) + "\n")
    for name in ("stdout", "stderr"):
        with (directory / name).open("wb") as joined:
            for piece, _ in parts:
                with (piece.directory / name).open("rb") as part:
                    shutil.copyfileobj(part, joined)
    (directory / "scratch").mkdir(exist_ok=True)
    (directory / "job.json").write_text(json.dumps(whole(job).described), encoding="utf-8")
    from_there = added([one for _, part in parts for one in part.places])
    # last: with it the lane can be taken over as a whole
    write_json(directory / "ending.json", {"reason": "", "timed_out": False, "places": from_there})
    shutil.rmtree(directory / PIECES)


def added(there: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Places with their trials, each place once; in order of appearance."""
    found: dict[str, dict[str, Any]] = {}
    for one in there:
        key = json.dumps([one["node"], one["gpus"], one["gpu_type"], one["driver"]])
        known = found.setdefault(key, {**one, "trials": 0})
        known["trials"] += one["trials"]
    return list(found.values())
