"""Many logs as tasks: how they are cut, and what one says of its logs, as JSON and back.

`cluster.py` reads one log, `looking.py` is the side of where a task runs.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import UsageError
from ..escape import printable, quoted
from ..execution.choice import Choice, place_of
from ..execution.play import play
from ..execution.task import Done, Task
from ..execution.telling import Teller
from .cluster import Brief, Log, look

ENTRY = "logs"
ANSWER = "answer.json"
SECONDS = 3600.0  # of one chunk: for what hangs, a chunk takes seconds
LARGEST_ANSWER = 256 << 20  # bytes; more is not one of ours
PIECES = 16  # into which a folder is cut, so that every processor has work to its end
# Bytes of logs of a chunk: fewer are read in less time than a process takes to start; what is sent
# is held in memory on its way, several chunks at once.
LEAST, MOST, MOST_SENT = 16 << 20, 64 << 20, 32 << 20
MOST_LOGS = 512  # of a chunk
FEW = 32  # logs that are read sooner than a process is started
LARGEST_SENT = 256 << 20  # bytes of a log that is sent to another machine


@dataclass(frozen=True, slots=True)
class Chunk:
    """Logs of one task: index of the first among all, and each with its size in bytes."""

    first: int
    logs: tuple[tuple[Path, int], ...]

    @property
    def bytes(self) -> int:
        """Of all its logs."""
        return sum(size for _, size in self.logs)


@dataclass(frozen=True, slots=True)
class Spread:
    """Where logs are read. in_place: the nodes of a cluster have the files at the same paths, so
    that none is sent."""

    choice: Choice
    in_place: bool = False

    @property
    def sent(self) -> bool:
        """Whether logs go to another machine."""
        return self.choice.ray is not None and not self.in_place


def chunks(logs: Sequence[tuple[Path, int]], most: int = MOST) -> list[Chunk]:
    """Logs cut into stretches of about the same bytes, in their order; each is in one. Pure.

    most: bytes of a stretch, but for a log that is larger by itself.
    """
    total = sum(size for _, size in logs)
    wanted = min(max(total // PIECES, LEAST), most)
    found: list[Chunk] = []
    begun: list[tuple[Path, int]] = []
    for at, log in enumerate(logs):
        full = sum(size for _, size in begun) + log[1] > wanted or len(begun) == MOST_LOGS
        if begun and full:
            found.append(Chunk(at - len(begun), tuple(begun)))
            begun = []
        begun.append(log)
    if begun:
        found.append(Chunk(len(logs) - len(begun), tuple(begun)))
    return found


def look_at_all(
    paths: Sequence[Path], spread: Spread, told: Callable[[str], None] = lambda line: None
) -> Iterator[Log]:
    """The logs in order, wherever they are read. ClusterError; UsageError for a log that is too
    large to be sent."""
    choice = spread.choice
    if choice.ray is None and ((choice.jobs or 1) == 1 or len(paths) < FEW):
        for number, path in enumerate(paths, start=1):
            yield look(str(path))
            if number % FEW == 0:
                told(f"{number:,} of {len(paths):,} logs")
        return
    readable = [(path, size) for path in paths if (size := _size(path)) is not None]
    if spread.sent:
        for path, size in readable:
            _refuse(path, size)
    cut = chunks(readable, MOST_SENT if spread.sent else MOST)
    teller = Teller(len(cut), lambda line: told(f"parts of {len(paths):,} logs: {line}"))
    found: dict[Path, Log] = {}
    with TemporaryDirectory(prefix="specrepro-logs-") as name:
        tasks = {str(c.first): _task(c, Path(name), sent=spread.sent) for c in cut}
        of = {str(c.first): c for c in cut}
        with place_of(choice, Path(name), teller.hear) as where:
            for done in play(tasks.values(), where, teller.hear):
                chunk = of[done.task.id]
                found |= zip((path for path, _ in chunk.logs), _logs(done, chunk), strict=True)
                shutil.rmtree(done.task.directory, ignore_errors=True)
    for path in paths:
        # what cannot be opened here is said as it is without a task
        yield found.pop(path) if path in found else look(str(path))


def _task(chunk: Chunk, folder: Path, *, sent: bool) -> Task:
    """A task reads its logs by number where they are sent, else by their path at home."""
    rows: list[dict[str, Any]] = []
    files: dict[str, Path] = {}
    for number, (path, size) in enumerate(chunk.logs):
        at = str(path.absolute())
        if sent:
            # how a name ends says what is in it
            at = f"logs/{number}{''.join(s for s in path.suffixes[-2:] if s[1:].isalnum())}"
            files[at] = path
        rows.append({"name": str(path), "at": at, "size": size})
    last = chunk.first + len(chunk.logs)
    label = f"logs {chunk.first + 1:,} to {last:,}"
    name = str(chunk.first)
    job = {"logs": rows, "sent": sent}
    return Task(name, ENTRY, job, folder / name, SECONDS, files=files, label=label)


def _logs(done: Done, chunk: Chunk) -> list[Log]:
    """What a task says of its logs; each of those it says nothing of is one that was not read."""
    reason = done.lost or done.ended.reason
    if not reason:
        try:
            return _read(done.task.directory / ANSWER, chunk)
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"its answer cannot be read: {printable(str(error))}"
    return [Log(printable(str(path)), 0, (), printable(reason)) for path, _ in chunk.logs]


def _read(path: Path, chunk: Chunk) -> list[Log]:
    if path.stat().st_size > LARGEST_ANSWER:
        raise ValueError(f"more than {LARGEST_ANSWER} bytes")
    rows = json.loads(path.read_text(encoding="utf-8"))
    logs = [from_json(row) for row in rows]
    names = [printable(str(path)) for path, _ in chunk.logs]
    if [log.file for log in logs] != names:
        raise ValueError("it is about other logs")
    return logs


def to_json(log: Log) -> dict[str, Any]:
    """A log as JSON values."""
    return asdict(log)


def from_json(row: Any) -> Log:
    """What `to_json` made; KeyError, TypeError or ValueError for anything else."""
    briefs = tuple(
        Brief(
            str(one["signature"]),
            str(one["file"]),
            tuple(str(host) for host in one["hosts"]),
            None if one["time"] is None else (float(one["time"][0]), str(one["time"][1])),
            dict(one["row"]),
        )
        for one in row["briefs"]
    )
    problem = None if row["problem"] is None else str(row["problem"])
    return Log(str(row["file"]), int(row["lines"]), briefs, problem)


def _size(path: Path) -> int | None:
    """Bytes of a file, None for one that cannot be opened."""
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_size
    except OSError:
        return None


def _refuse(path: Path, size: int) -> None:
    if size > LARGEST_SENT:
        raise UsageError(
            f"{quoted(str(path))} has {size:,} bytes: too large to be sent to another machine",
            hint="--in-place reads logs where they lie, in a folder that all nodes have",
        )
