"""Depth source: what the code of a build says to the probes of a case."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..errors import UntestableError
from .probes import load
from .probing.probe import Lift, Probe
from .sandbox import SECONDS, Session, execute
from .tree import Tree

MOST_FILES, MOST_BYTES = 400, 32 << 20
AROUND = 1  # lines of an excerpt before and after


@dataclass(frozen=True, slots=True)
class Reading:
    """What one probe said of a build.

    value: None for unknown, else one of the probe's values (for a table: key → value). how: `ran`,
    `read`, `kernel` (one of the build was launched) or `unknown`. detail: what was seen, or why it
    is not known. excerpt: (line number, text) around the line, which counts from 1.
    """

    probe: str
    value: str | Mapping[str, str] | None
    how: str
    detail: str
    path: str | None = None
    line: int | None = None
    excerpt: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Readings of a build by probe, and how they were made. lifts: by kernel, what the child said;
    files: the members that it was about."""

    readings: Mapping[str, Reading]
    holds: tuple[str, ...]
    fails: tuple[str, ...]
    lifts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


def look(
    tree: Tree, probes: Sequence[str], lifts: Sequence[Lift] = (), *, seconds: float = SECONDS
) -> Source:
    """Ask `probes` of a build, and lift kernels. UntestableError where its files cannot be had;
    what a probe or the child could not do is a reading of its own, unknown."""
    asked = {name: load(name) for name in probes}
    names = members(tree.names(), asked.values(), lifts)
    if len(names) > MOST_FILES:
        raise UntestableError(f"{len(names)} files of the build fit the probes; too many")
    tree.fetch(names)
    files: dict[str, bytes] = {}
    for name in names:
        files[name] = tree.read(name)
        if sum(map(len, files.values())) > MOST_BYTES:
            raise UntestableError("the files that the probes look at are too large")
    session = execute(files, probes, lifts, seconds=seconds)
    readings = {name: reading(probe, session, files) for name, probe in asked.items()}
    missing = {"unknown": session.ending or "it was not lifted"}
    lifted = {lift.id: session.lifts.get(lift.id, missing) for lift in lifts}
    return Source(readings, session.holds, session.fails, lifted, files)


def members(names: Iterable[str], probes: Iterable[Probe], lifts: Iterable[Lift] = ()) -> list[str]:
    """The names that the probes look at, and those in which kernels are looked for."""
    names = list(names)
    globs = [f for p in probes for f in p.patterns(names)]
    globs += [f for lift in lifts for f in (*lift.files, *lift.helpers)]
    patterns = _patterns(tuple(dict.fromkeys(globs)))
    return [name for name in names if name.endswith(".py") and patterns.fullmatch(name)]


@cache
def _patterns(globs: tuple[str, ...]) -> re.Pattern[str]:
    parts = (f"(?:.*/)?{fnmatch.translate(glob)}" for glob in globs)
    return re.compile("|".join(f"(?:{part})" for part in parts))


def reading(probe: Probe, session: Session, files: Mapping[str, bytes]) -> Reading:
    """What the child said for a probe, looked at: an answer that is none is unknown."""
    said = session.answers.get(probe.id)
    if said is None:
        return _unknown(probe, session.ending or "it was not answered")
    if "unknown" in said:
        return _unknown(probe, str(said["unknown"]))
    value, path, line = _value(probe, said.get("value")), said.get("path"), said.get("line")
    if value is None:
        return _unknown(probe, f"{str(said.get('value'))[:80]!r} is no answer to it")
    if not isinstance(path, str) or path not in files or not isinstance(line, int):
        return _unknown(probe, "it does not say where")
    how = "ran" if said.get("ran") is True else "read"
    detail = str(said.get("detail", ""))
    return Reading(probe.id, value, how, detail, path, line, excerpt(files[path], line))


def _unknown(probe: Probe, why: str) -> Reading:
    return Reading(probe.id, None, "unknown", why)


def _value(probe: Probe, value: Any) -> str | Mapping[str, str] | None:
    """The value, if it is one that the probe can answer."""
    if not probe.table:
        return value if isinstance(value, str) and value in probe.values else None
    if not isinstance(value, dict) or not value:
        return None
    known = all(isinstance(v, str) and v in probe.values for v in value.values())
    return value if known else None


def excerpt(content: bytes, line: int) -> tuple[tuple[int, str], ...]:
    """The lines of a file around `line`; () where it has no such line."""
    lines = content.decode("utf-8", "replace").splitlines()
    if not 1 <= line <= len(lines):
        return ()
    first, last = max(1, line - AROUND), min(len(lines), line + AROUND)
    return tuple((n, lines[n - 1][:200]) for n in range(first, last + 1))
