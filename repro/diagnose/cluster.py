"""Many logs at once: each is diagnosed by itself, and incidents that look alike are counted.

A signature is the first failure without addresses and numbers, what the kernel log has beside, and
the likeliest class. A log that cannot be read is counted and named, never passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import SpecreproError, UsageError
from ..escape import printable, quoted
from .facts import Clock, Fact, Reading
from .record import short, signature
from .session import diagnose

EXAMPLES = 5
# Names of files that are no logs.
OTHERS = frozenset({".json", ".yaml", ".yml", ".py", ".png", ".jpg", ".pdf", ".safetensors"})
MOST_HOSTS = 20


@dataclass(frozen=True, slots=True)
class Brief:
    """One incident of one log. time: its first failure's, as (seconds, text) of a wall clock."""

    signature: str
    file: str
    hosts: tuple[str, ...]
    time: tuple[float, str] | None
    row: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Log:
    """What became of one log. problem: why it could not be read, None if it could."""

    file: str
    lines: int
    briefs: tuple[Brief, ...]
    problem: str | None = None


def log_files(folder: Path) -> list[Path]:
    """The files below a folder that may be logs, by name; hidden ones and links are left out."""
    found: list[Path] = []
    for path, names, files in os.walk(folder):
        names[:] = sorted(n for n in names if not n.startswith("."))
        for name in sorted(files):
            file = Path(path, name)
            plain = not name.startswith(".") and file.suffix not in OTHERS
            if plain and file.is_file() and not file.is_symlink():
                found.append(file)
    if not found:
        raise UsageError(f"no log below {quoted(str(folder))}", hint="*.json and the like are none")
    return found


def look(path: str, called: str | None = None) -> Log:
    """Read and diagnose one log; what goes wrong with it is said in the result.

    called: the path by which it is known, where it is read at another one.
    """
    from .survey import read_all

    at, name = printable(path), printable(called or path)
    try:
        reading = _renamed(read_all([Path(path)]), at, name)
        diagnoses = [one for one in diagnose(reading) if one.found]
    except (SpecreproError, OSError) as error:
        return Log(name, 0, (), printable(str(error)).replace(at, name))
    lines = sum(source.lines for source in reading.sources)
    hosts = tuple(sorted({h for source in reading.sources if (h := source.host)}))
    briefs = tuple(
        Brief(signature(one), name, hosts, _time(one.course.failures), short(reading, one))
        for one in diagnoses
    )
    return Log(name, lines, briefs)


def _renamed(reading: Reading, at: str, name: str) -> Reading:
    """A reading whose sources have the name `name`, or begin with it, in place of `at`."""
    if at == name:
        return reading
    renamed = (
        replace(source, name=name + source.name.removeprefix(at))
        if source.name.startswith(at)
        else source
        for source in reading.sources
    )
    return replace(reading, sources=tuple(renamed))


def clusters(briefs: Iterable[Brief]) -> list[dict[str, Any]]:
    """Incidents by signature, the most frequent first."""
    groups: dict[str, list[Brief]] = {}
    for brief in briefs:
        groups.setdefault(brief.signature, []).append(brief)
    rows = [_cluster(name, group) for name, group in groups.items()]
    rows.sort(key=lambda row: (-row["count"], row["signature"]))
    return [{"number": number, **row} for number, row in enumerate(rows, start=1)]


def _cluster(name: str, group: Sequence[Brief]) -> dict[str, Any]:
    times = sorted(brief.time for brief in group if brief.time)
    hosts = sorted({host for brief in group for host in brief.hosts})
    files = list(dict.fromkeys(brief.file for brief in group))
    return {
        **group[0].row,
        "signature": name,
        "count": len(group),
        "files": len(files),
        "sources": files[:EXAMPLES],
        "first_seen": times[0][1] if times else None,
        "last_seen": times[-1][1] if times else None,
        "hosts": hosts[:MOST_HOSTS],
        "more_hosts": max(0, len(hosts) - MOST_HOSTS),
    }


def _time(facts: Sequence[Fact]) -> tuple[float, str] | None:
    for fact in facts:
        if fact.time is not None and fact.time.clock is Clock.WALL:
            year = fact.time.year or 0
            return year * 366 * 86400.0 + fact.time.seconds, fact.time.text
    return None
