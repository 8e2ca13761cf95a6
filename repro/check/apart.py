"""Builds looked at apart: each a task, on this machine or on a cluster, by the same code.

Here is the side of home: what a task is told, and the record of a build from what it left.
`asking.py` is the other side.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..case import Case, LoadedCase
from ..device_lanes import needs as device_needs
from ..errors import LaneError, UnreachableError, UsageError
from ..escape import printable, quoted
from ..execution.choice import Choice, place_of
from ..execution.here import Here
from ..execution.play import Told as Hears
from ..execution.play import Where, play
from ..execution.task import HERE, Done, Needs, Place, Task
from ..execution.telling import Teller
from .defects import BuildVerdict
from .depth import NOWHERE, Asked, untestable_record
from .versions import wanted

if TYPE_CHECKING:
    from ..execution.cards import Cards

ENTRY = "build"
FOLDER = "apart"  # of a run, where tasks leave what they have; gone when all have ended
CASE, ANSWER, LEFT = "case.yaml", "answer.json", "left"
LARGEST = 64 << 20  # bytes of an answer; more is not one of ours
# Seconds after which a build is given up from the outside. What works has limits of its own, which
# are far below: these are for what hangs.
SECONDS = {"source": 900.0, "kernel": 1800.0, "engine": 6 * 3600.0}
# What every record of a build has, and its type.
KEYS: Mapping[str, type] = {
    "version": str, "verdict": str, "exposure": list, "evidence": list, "reasons": list,
    "defects": list, "isolation": dict, "notes": list,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class How:
    """How builds are looked at. cache: None for the default of the machine that looks. offline,
    allow_full_download, prereleases, yanked: as `Builds` has them."""

    depth: str
    model: Path | None = None
    controls: bool = False
    inject: str | None = None
    collect: bool = False
    cache: Path | None = None
    offline: bool = False
    allow_full_download: bool = False
    prereleases: bool = False
    yanked: bool = False

    def record(self) -> dict[str, Any]:
        """As JSON; a path as it is from anywhere on this machine."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {k: str(v.absolute()) if isinstance(v, Path) else v for k, v in fields.items()}


@dataclass(frozen=True, slots=True)
class Answered:
    """A build that was looked at. traffic: requests and bytes. left: folders of evidence."""

    row: dict[str, Any]
    traffic: tuple[int, int]
    left: tuple[Path, ...]


def only_of_an_index(spec: str) -> None:
    """UsageError for a build that is on this machine alone, and not on the nodes of a cluster."""
    if wanted(spec).kind in ("installed", "path"):
        raise UsageError(
            f"{quoted(spec)} is of this machine; the nodes of a cluster have it not",
            hint="leave --ray out, or name a version, or an address",
        )


def case_file(case: LoadedCase, folder: Path) -> Path:
    """The case as it was read, in `folder`. UsageError where it was changed since."""
    content = case.path.read_bytes()
    if hashlib.sha256(content).hexdigest() != case.sha256:
        raise UsageError("the case file was changed after it was read", hint="ask again")
    folder.mkdir(exist_ok=True)
    path = folder / CASE
    path.write_bytes(content)
    return path


def task_of(
    name: str, spec: str, how: How, asked: Asked, case: Path, needs: Needs, *, away: bool
) -> Task:
    """The task of looking at one build. name: unique in its play, and of its folder. case: from
    `case_file`. away: whether another machine could do better where this one fails; at home there
    is no other network."""
    job = {
        "spec": spec,
        "called": spec,
        "how": how.record(),
        "sha256": asked.case.sha256,
        "also": list(asked.also),
        "defects": list(asked.question.defects),
        "fixed": dict(asked.question.fixed),
        "default_only": asked.question.default_only,
        "seconds": asked.seconds,
        "away": away,
    }
    return Task(
        name,
        ENTRY,
        job,
        asked.folder / FOLDER / name,
        SECONDS[how.depth] + (asked.seconds or 0.0),
        needs,
        {CASE: case},
        label=spec,
    )


def answered(done: Done) -> Answered:
    """What a task says of its build. UsageError where the question could not be asked at all.

    What is missing or is no answer of ours makes the build untestable for now, with the reason.
    """
    name = str(done.task.job["called"])
    reason = done.lost or done.ended.reason
    if not reason:
        try:
            answer = _read(done.task.directory)
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"its answer cannot be read: {printable(str(error))}"
        else:
            if done.left:
                answer.row["notes"].append(f"evidence too large to be sent stayed at {done.left}")
            return answer
    lost = UnreachableError(printable(reason))
    return Answered(untestable_record(replace(NOWHERE, version=name), lost), (0, 0), ())


def _read(directory: Path) -> Answered:
    path = directory / ANSWER
    if path.stat().st_size > LARGEST:
        raise ValueError(f"more than {LARGEST} bytes")
    found = json.loads(path.read_text(encoding="utf-8"))
    if "refused" in found:
        raise UsageError(str(found["refused"]), hint=found["hint"] and str(found["hint"]))
    row = found["row"]
    for key, kind in KEYS.items():
        if type(row[key]) is not kind:
            raise ValueError(f"{key} is no {kind.__name__}")
    BuildVerdict(row["verdict"])
    requests, size = found["traffic"]
    left = directory / LEFT
    return Answered(
        dict(row),
        (int(requests), int(size)),
        tuple(sorted(left.iterdir())) if left.is_dir() else (),
    )


def place_record(place: Place | None) -> dict[str, Any] | None:
    """A place as a record keeps it; no name of a machine is in it."""
    if place is None:
        return None
    return {
        "node": place.node,
        "gpus": list(place.gpus),
        "gpu_type": place.gpu_type,
        "driver": place.driver,
        "machine": place.machine,
    }


def keep(found: Answered, folder: Path) -> None:
    """Move what a build left to where a check at home leaves it."""
    for path in found.left:
        target, number = folder / path.name, 1
        while target.exists():
            number += 1
            target = folder / f"{path.name}.{number}"
        shutil.move(path, target)


@dataclass(frozen=True, slots=True)
class Apart:
    """Goes through builds apart. choice: where."""

    how: How
    choice: Choice

    def rows(self, specs: Sequence[str], asked: Asked) -> list[dict[str, Any]]:
        """The records of builds in their order, each looked at by a task of its own.

        Errors: UsageError where the question cannot be asked; ClusterError; LaneError where
        engines need a GPU and none may be used.
        """
        if self.choice.ray is not None:
            for spec in specs:
                only_of_an_index(spec)
        teller = Teller(len(specs), asked.told)
        found: dict[str, dict[str, Any]] = {}
        try:
            case = asked.case.case
            with opened(case, self.how, self.choice, asked.folder, teller.hear) as (where, needs):
                away = self.choice.ray is not None
                file = case_file(asked.case, asked.folder / FOLDER)
                tasks = [
                    task_of(str(number), spec, self.how, asked, file, needs, away=away)
                    for number, spec in enumerate(specs, 1)
                ]
                for done in play(tasks, where, teller.hear):
                    answer = answered(done)
                    keep(answer, asked.folder)
                    place = {"place": place_record(done.place)}
                    found[done.task.id] = answer.row | place
                    shutil.rmtree(done.task.directory, ignore_errors=True)
        finally:
            shutil.rmtree(asked.folder / FOLDER, ignore_errors=True)
        return [found[task.id] for task in tasks]


@contextmanager
def opened(
    case: Case, how: How, choice: Choice, folder: Path, told: Hears
) -> Iterator[tuple[Where, Needs]]:
    """Where builds are looked at, and what each needs there: an engine a GPU, where there are such,
    and one that the case requires.

    folder: that tasks of this machine share.
    """
    cards = None
    if how.depth == "engine" and choice.ray is None:
        cards = _cards(choice.jobs or 1)
    with place_of(choice, folder, told, cards) as where:
        on_gpu = how.depth == "engine" and _gpus(where)
        yield where, device_needs(case) if on_gpu else Needs()


def at_home(depth: str) -> Place:
    """Where this process looks at builds, one after the other."""
    machine = platform.machine()
    if depth == "engine" and _engines_on_gpus():
        from ..lanes.gpu import choose
        from ..watch.gpus import gpus

        found = gpus()
        try:
            gpu = choose(found, None, os.environ, force=True)
        except LaneError:  # it will be said by what cannot use it
            return Place(gpus=("unknown",), machine=machine)
        name = gpu.uuid or str(gpu.index)
        return Place(HERE, (name,), gpu.name, found.driver, machine)
    return Place(machine=machine)


def _engines_on_gpus() -> bool:
    from .environments.session import default_package

    return default_package() == "vllm"


def _gpus(where: Where) -> bool:
    """Whether there are GPUs where builds are looked at."""
    if isinstance(where, Here):
        return where.cards is not None
    from ..execution.cluster import RayCluster

    nodes = where.nodes.values() if isinstance(where, RayCluster) else ()
    return any(node.gpus_counted for node in nodes if not node.refused)


def _cards(jobs: int) -> Cards | None:
    """GPUs of this machine for engines, one each; None where engines are for processors."""
    if not _engines_on_gpus():
        return None
    from ..execution.cards import open_cards
    from ..watch.gpus import gpus

    return open_cards(gpus(), None, os.environ, force=False, most=jobs)
