"""What a person does with a session: look at it, correct it, play it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import store
from ..errors import RunNotFoundError, UsageError
from ..escape import quoted
from ..records import to_json
from . import session
from .journal import Journal, read_all
from .plan import COMMAND
from .question import Result
from .session import Quest
from .timeline import states
from .verdicts import Mark, Marked, Observation, Undo, effective

SCHEMA = "specrepro/session@1"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a session with its journal."""

    quest: Quest
    journal: Journal


def find(folder: Path, name: str | None) -> Path:
    """The run directory of a session: the newest, or the one that `name` begins."""
    if name is not None:
        path = store.find(folder, name)
        if store.request(path).get("command") != COMMAND:
            raise RunNotFoundError(
                f"run {quoted(path.name)} is no bisection", hint="specrepro runs list"
            )
        return path
    for run in store.stored(folder):
        if run.command == COMMAND:
            return run.path
    raise RunNotFoundError(
        f"no bisection in {quoted(str(folder))}", hint="specrepro bisect CASE begins one"
    )


def lines(path: Path) -> list[Line]:
    """Releases, then the commits of each boundary that was gone into."""
    request = store.request(path)
    records = [request.get("line"), *(_read(file) for file in sorted(path.glob("commit-*.json")))]
    quests = [session.restored(record) for record in records if isinstance(record, dict)]
    if not quests:
        raise RunNotFoundError(
            f"run {quoted(path.name)} has no line of candidates", hint="specrepro runs list"
        )
    return [Line(quest, session.open_journal(path, quest)) for quest in quests]


def standing(path: Path) -> dict[str, Any]:
    """How far a session is, specrepro/session@1."""
    every = lines(path)
    return {
        "schema": SCHEMA,
        "run": {"id": path.name, "path": str(path)},
        "replayed": False,
        "finished": (path / store.RESULT).is_file(),
        "at_work": store.in_use(path),
        "asked": store.request(path).get("asked", {}),
        "lines": [_standing(line) for line in every],
    }


def _standing(line: Line) -> dict[str, Any]:
    engine = session.engine_of(line.quest, line.journal)
    step = session.next_step(line.quest, engine)
    state = states(line.quest.line.builds, engine.counted())
    return {
        "name": line.quest.name,
        "find": str(line.quest.options.find),
        "candidates": len(state),
        "unavailable": len(line.quest.line.unavailable),
        "states": {word: [b for b, s in state.items() if s == word] for word in ("good", "bad")},
        "trials": sum(isinstance(e, Observation) for e in effective(line.journal.events)),
        "next": None if isinstance(step, Result) else [to_json(trial) for trial in step],
        "result": to_json(step) if isinstance(step, Result) else None,
    }


def log(path: Path) -> Iterator[str]:
    """The journals of a session, a line each, as they are kept."""
    for line in lines(path):
        yield from line.journal.path.read_text(encoding="utf-8").splitlines()


def undo(path: Path) -> str:
    """Take the latest trial or mark back; says which. UsageError where there is none."""
    with store.held(path):
        for line in reversed(lines(path)):
            counted = effective(line.journal.events)
            last = next((e for e in reversed(counted) if isinstance(e, Observation | Mark)), None)
            if last is not None:
                line.journal.append(Undo())
                _reopen(path)
                what = "the mark" if isinstance(last, Mark) else f"trial {last.number}"
                return f"{what} of {last.build}"
    raise UsageError(f"session {quoted(path.name)} has no trial to take back")


def mark(path: Path, build: str, word: str) -> str:
    """Note what a person says of a build; the full name of the build. UsageError if it is none."""
    if word not in set(Marked):
        raise UsageError(f"a build is marked {', '.join(Marked)}, not {quoted(word)}")
    with store.held(path):
        every = lines(path)
        for line in every:
            builds = line.quest.line.builds
            found = [b for b in builds if b == build] or [
                b for b in builds if len(build) >= 7 and b.startswith(build) and len(b) >= 40
            ]
            if len(found) == 1:
                line.journal.append(Mark(found[0], Marked(word)))
                _reopen(path)
                return found[0]
    first = every[0].quest.line.builds
    raise UsageError(
        f"{quoted(build)} is no candidate of session {quoted(path.name)}",
        hint=f"it searches {first[0]} to {first[-1]}",
    )


def _reopen(path: Path) -> None:
    """A result that no longer follows from the journal goes; the same command makes it anew."""
    (path / store.RESULT).unlink(missing_ok=True)


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{quoted(file.name)} of the session cannot be read") from error


def replay(file: Path) -> dict[str, Any]:
    """What follows from journals, by themselves: no session, no trial, and nothing is written.

    UsageError for a file that holds no journal, or one without the search it is of.
    """
    every = []
    for written in read_all(file):
        if not written.quest:
            raise UsageError(
                f"{quoted(str(file))} does not hold the search that it is the journal of",
                hint="a journal that this version begins does",
            )
        played = Journal(file, list(written.events))
        every.append(Line(session.restored(written.quest), played))
    if not every:
        raise UsageError(f"{quoted(str(file))} holds no journal", hint="specrepro session log")
    return {
        "schema": SCHEMA,
        "run": {"id": file.name, "path": str(file)},
        "replayed": True,
        "finished": False,
        "at_work": False,
        "asked": {},
        "lines": [_standing(line) for line in every],
    }
