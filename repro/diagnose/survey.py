"""`diagnose` from arguments to a stored record: what to read, one incident or many, the status."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import store
from ..errors import Exit, UsageError
from ..escape import printable, quoted
from .facts import Reading
from .record import SCHEMA, diagnosis_record
from .rules import load
from .session import diagnose

if TYPE_CHECKING:
    from .chunks import Spread

Told = Callable[[str], None]
WATCH = "watch"
# files of a watched run that hold no lines of its program
OWN = frozenset({store.REQUEST, store.RESULT, store.LOCK})


class Report(NamedTuple):
    """The record of a diagnosis, specrepro/diagnose@1, and the status it ends with."""

    record: dict[str, Any]
    status: Exit


def survey(
    arguments: Sequence[str],
    folder: Path,
    *,
    spread: Spread | None = None,
    told: Told = lambda line: None,
) -> Report:
    """Diagnose what the arguments name, and keep the run in `folder`.

    spread: where the logs of a folder are read, in this process unless it says otherwise.
    UsageError for what is no log, ClusterError; nothing is stored then.
    """
    began = time.monotonic()
    paths, many = _paths(arguments, folder)
    body = _many(paths, spread, told) if many else _one(paths)
    asked = {"logs": [str(argument) for argument in arguments]}
    path = store.create(folder, "diagnose", asked)
    record = {
        "schema": SCHEMA,
        "run": {
            "id": path.name,
            "path": str(path),
            "command": "diagnose",
            "version": _version(),
            "started": str(store.request(path)["started"]),
            "seconds": round(time.monotonic() - began, 3),
        },
        "environment": {
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        **body,
    }
    store.finish(path, record)
    return Report(record, Exit.OK if record["incidents"] else Exit.UNTESTABLE)


def _version() -> str:
    from ... import __version__

    return __version__


def _paths(arguments: Sequence[str], folder: Path) -> tuple[list[Path], bool]:
    """The files to read, and whether each is a log of its own."""
    paths: list[Path] = []
    many = False
    for argument in arguments:
        path = Path(argument)
        if argument == store.LATEST and not path.exists():
            paths += _watched(folder)
        elif path.is_dir():
            from .cluster import log_files

            many = True
            paths += log_files(path)
        else:
            paths.append(path)
    return paths, many


def _watched(folder: Path) -> list[Path]:
    """The logs of the run of `specrepro watch` that was kept last."""
    for run in store.stored(folder):
        if run.command == WATCH:
            return [p for p in sorted(run.path.iterdir()) if p.is_file() and p.name not in OWN]
    raise UsageError(
        f"no run of `specrepro watch` in {quoted(str(folder))}",
        hint="name log files; `latest` reads what `specrepro watch -- COMMAND` kept",
    )


def _one(paths: Sequence[Path]) -> dict[str, Any]:
    reading = read_all(paths)
    return {"logs": len(paths), **diagnosis_record(reading, diagnose(reading))}


def read_all(paths: Sequence[Path]) -> Reading:
    """Logs and pages to facts, with what the prose of pages says about experiments."""
    from .read import read

    reading = read(paths)
    if all(source.part != "prose" for source in reading.sources):
        return reading
    from .said import with_claims

    return with_claims(reading, paths, load().claims)


def _many(paths: Sequence[Path], spread: Spread | None, told: Told) -> dict[str, Any]:
    """Each log by itself; the one that stands for the most frequent incident is told in full."""
    from ..execution.choice import Choice
    from .chunks import Spread, look_at_all
    from .cluster import clusters

    logs = list(look_at_all(paths, spread or Spread(Choice()), told))
    rows = clusters(brief for log in logs for brief in log.briefs)
    example = rows[0]["sources"][0] if rows else None
    shown = next((path for path in paths if printable(str(path)) == example), paths[0])
    body = _one([shown])
    unread = [
        {"source": log.file, "what": log.problem, "count": 1, "line": 0}
        for log in logs
        if log.problem
    ]
    return {
        **body,
        "logs": len(logs),
        "quiet": sum(not log.briefs and not log.problem for log in logs),
        "lines": sum(log.lines for log in logs),
        "incidents": rows,
        "unread": [*unread, *body["unread"]],
    }
