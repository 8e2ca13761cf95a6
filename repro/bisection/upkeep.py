"""What a person does with a session: look at it, correct it, play it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import store
from ..errors import RunNotFoundError, UsageError
from ..escape import quoted
from . import beside, other_flips, session
from .beside import Beside
from .journal import Journal, read, read_all
from .plan import COMMAND
from .standing import COMMITS, Line, boundary
from .standing import standing as _standing
from .verdicts import Mark, Marked, Observation, Undo, effective

TAKES_BACK = "specrepro session undo takes trials back, the latest first"


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
    """Releases, the stretches between other boundaries of theirs, and the commits of each boundary
    that was gone into."""
    request = store.request(path)
    records = [
        request.get("line"),
        # a stretch is cut out of the releases anew each time, and its journal says what it is
        *(_quest(file) for file in sorted(path.glob(f"{other_flips.STAGE}-*.jsonl"))),
        *(_read(file) for file in sorted(path.glob(f"{COMMITS}*.json"))),
    ]
    quests = [session.restored(record) for record in records if isinstance(record, dict)]
    if not quests:
        raise RunNotFoundError(
            f"run {quoted(path.name)} has no line of candidates", hint="specrepro runs list"
        )
    return [Line(quest, session.open_journal(path, quest)) for quest in quests]


def standing(path: Path) -> dict[str, Any]:
    """How far a session is, specrepro/session@1."""
    about = {
        "run": {"id": path.name, "path": str(path)},
        "replayed": False,
        "finished": (path / store.RESULT).is_file(),
        "at_work": store.in_use(path),
        "asked": store.request(path).get("asked", {}),
    }
    return _standing(about, lines(path), list(beside.kept(path)))


def log(path: Path) -> Iterator[str]:
    """The journals of a session, a line each, as they are kept."""
    every: list[Line | Beside] = [*lines(path), *beside.kept(path)]
    for one in every:
        yield from one.journal.path.read_text(encoding="utf-8").splitlines()


def undo(path: Path) -> str:
    """Take the latest trial or mark back; says which. UsageError where there is none."""
    with store.held(path):
        every = lines(path)
        now = boundary(every)
        # those of a boundary that is none any more changed nothing of what holds now
        besides = [one for one in beside.kept(path) if (one.bad, one.good) == now]
        latest: list[Line | Beside] = [*filter(_just_marked, every), *besides, *reversed(every)]
        for one in latest:
            counted = effective(one.journal.events)
            last = next((e for e in reversed(counted) if isinstance(e, Observation | Mark)), None)
            if last is not None:
                one.journal.append(Undo())
                _reopen(path)
                return _taken_back(last, one)
    raise UsageError(f"session {quoted(path.name)} has no trial to take back")


def _just_marked(line: Line) -> bool:
    """Whether a person's word is the latest: who tries on opens the session before."""
    counted = effective(line.journal.events)
    return bool(counted) and isinstance(counted[-1], Mark)


def _taken_back(last: Observation | Mark, one: Line | Beside) -> str:
    if isinstance(last, Mark):
        return f"the mark of {last.build}"
    if last.varied is None or isinstance(one, Line):
        return f"trial {last.number} of {last.build}"
    other = one.good if last.varied.build == one.bad else one.bad
    return f"trial {last.number} of {last.varied.words(other)}"


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
        for one in beside.kept(path):
            if any(isinstance(e, Observation) and e.build == build for e in one.journal.events):
                raise UsageError(
                    f"{quoted(build)} is no build but a variation of one, which only trials decide",
                    hint=TAKES_BACK,
                )
    first = every[0].quest.line.builds
    raise UsageError(
        f"{quoted(build)} is no candidate of session {quoted(path.name)}",
        hint=f"it searches {first[0]} to {first[-1]}",
    )


def _reopen(path: Path) -> None:
    """A result that no longer follows from the journal goes; the same command makes it anew."""
    (path / store.RESULT).unlink(missing_ok=True)


def _quest(file: Path) -> Any:
    # a journal whose header is not whole has no trial either
    return read(file).quest or None


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{quoted(file.name)} of the session cannot be read") from error


def replay(file: Path) -> dict[str, Any]:
    """What follows from journals, by themselves: no session, no trial, and nothing is written.

    UsageError for a file that holds no journal, or one without the search it is of.
    """
    every: list[Line] = []
    besides: list[Beside] = []
    for written in read_all(file):
        played = Journal(file, list(written.events))
        if written.search.get("line") == beside.STAGE:
            besides.append(Beside(*beside.ends(file, written.search), played))
        elif written.quest:
            every.append(Line(session.restored(written.quest), played))
        else:
            raise UsageError(
                f"{quoted(str(file))} does not hold the search that it is the journal of",
                hint="a journal that this version begins does",
            )
    if not every and besides:
        raise UsageError(
            f"{quoted(str(file))} holds trials of variations, and not the search they are of",
            hint="specrepro session log prints both",
        )
    if not every:
        raise UsageError(f"{quoted(str(file))} holds no journal", hint="specrepro session log")
    about = {
        "run": {"id": file.name, "path": str(file)},
        "replayed": True,
        "finished": False,
        "at_work": False,
        "asked": {},
    }
    return _standing(about, every, besides)
