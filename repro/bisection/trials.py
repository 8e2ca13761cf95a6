"""One trial: a build is asked at a depth, its answer kept as a file, and a verdict made of it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import store
from ..check.apart import Answered, keep
from ..check.builds import Builds
from ..check.defects import BuildVerdict
from ..check.depth import NOWHERE, Asked, Depth, Opener, untestable_record
from ..check.tree import Tree
from ..errors import UntestableError
from ..execution.task import Place as Ran
from .candidates import Candidate
from .groups import UNTOLD
from .repository import SHA, Repository
from .verdicts import Bad, Good, Infra, Observation, Other, Place, Untestable, Verdict

if TYPE_CHECKING:
    from .crew import Crew

FOLDER = "trials"
PROJECT = "vllm"
LOG = re.compile(FOLDER + r"/[\w.+!-]+\.json")
# probe and value with which a depth that runs an engine says that it ended in another way
ENDED_OTHERWISE = ("engine_end", "other")
LONGEST_SIGNATURE = 200  # characters
# What differs between builds that fail in the same way.
CHANGING = re.compile(r"\S*/\S*|\b[0-9a-f]{7,64}\b|v?\d[\w.+!-]*")


@dataclass(frozen=True, slots=True)
class Bench:
    """What trials are run with. folder: of the session; rows go to `trials/` in it. place: where
    it is, None where nobody knows. crew: who runs trials elsewhere, several at once; None: nobody.
    """

    depth: Depth
    asked: Asked
    builds: Opener
    folder: Path
    place: Place | None = None
    crew: Crew | None = None


@dataclass(frozen=True, slots=True)
class LineBuilds:
    """Opens what is on a line: commits of a clone, and releases, also such as were yanked: whether
    these are candidates was decided before. An `Opener`."""

    builds: Builds
    repository: Repository | None
    project: str

    def open(self, spec: str) -> Tree:
        if self.repository is not None and SHA.fullmatch(spec):
            return self.repository.tree(spec, self.project)
        return self.builds.open(spec, yanked=True)


def run(bench: Bench, candidate: Candidate, number: int) -> Observation:
    """Try a build once. OSError where its record cannot be kept."""
    began = time.monotonic()
    log = f"{FOLDER}/{candidate.build}-{number}.json"
    # what a depth leaves of a trial must not be taken for another one's
    own = (bench.folder / log).with_suffix("")
    own.mkdir(parents=True, exist_ok=True)
    try:
        row = bench.depth.answer(candidate.word, bench.builds, replace(bench.asked, folder=own))
    except UntestableError as error:
        row = untestable_record(replace(NOWHERE, version=candidate.build), error)
    row["seconds"] = round(time.monotonic() - began, 3)
    with contextlib.suppress(OSError):
        own.rmdir()  # nothing was left
    return _observed(bench.folder, log, candidate.build, number, row, bench.place)


def kept(folder: Path, build: str, number: int, answer: Answered, place: Ran | None) -> Observation:
    """A trial that ran as a task: what it left is kept as that of one that ran here."""
    log = f"{FOLDER}/{build}-{number}.json"
    own = (folder / log).with_suffix("")
    own.parent.mkdir(parents=True, exist_ok=True)
    if answer.left:
        shutil.rmtree(own, ignore_errors=True)  # of a process that was killed
        own.mkdir()
        keep(answer, own)
    return _observed(folder, log, build, number, {"seconds": 0.0, **answer.row}, as_place(place))


def as_place(place: Ran | None) -> Place | None:
    """Where a task ran, as a journal keeps it."""
    if place is None:
        return None
    kind = place.gpu_type or (UNTOLD if place.gpus else "")
    return Place(place.node, place.machine, kind, (place.driver or "") if kind else "")


def _observed(
    folder: Path, log: str, build: str, number: int, row: dict[str, Any], place: Place | None
) -> Observation:
    # to make an environment is no part of a trial: the next one of this build has it
    setup = float(row.get("setup_seconds", 0.0))
    seconds = round(max(float(row["seconds"]) - setup, 0.0), 3)
    row |= {"seconds": seconds}
    store.write_json(folder / log, row)
    return Observation(build, number, verdict(row, build), seconds, log, setup, place)


def verdict(row: Mapping[str, Any], build: str) -> Verdict:
    """What the record of a build says of the defects that are looked for. Pure.

    A build that is not the commit that was asked for says nothing about it.
    """
    if SHA.fullmatch(build) and row["commit"] and not _same(str(row["commit"]), build):
        reason = f"the wheel of commit {build[:12]} was built from {row['commit'][:12]}"
        return Untestable(reason, "wheel of another commit")
    if row["verdict"] == BuildVerdict.AFFECTED:
        said = " + ".join(dict.fromkeys(acting["defect"] for acting in row["exposure"]))
        return Bad(f"{said} (injected: {row['injected']})" if row.get("injected") else said)
    if row["verdict"] == BuildVerdict.NOT_AFFECTED:
        return Good()
    for one in row["evidence"]:
        # a whole engine that died of something else
        if (one["probe"], one["value"]) == ENDED_OTHERWISE:
            return Other(str(one["detail"])[:LONGEST_SIGNATURE])
    reason = "; ".join(row["reasons"]) or "no reason was given"
    if row.get("temporary"):
        return Infra(reason)
    return Untestable(reason, CHANGING.sub("#", reason))


def row_of(folder: Path, observation: Observation) -> dict[str, Any] | None:
    """The kept record of a trial, None where it is not there any more or is not readable."""
    if not LOG.fullmatch(observation.log):
        return None
    try:
        row = json.loads((folder / observation.log).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) else None


def _same(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
