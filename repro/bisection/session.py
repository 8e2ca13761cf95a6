"""A bisection in a run directory: taken up again where it was left, tried on, written down.

What was asked is hashed: the same command finds its own unfinished session and goes on. The line of
candidates is kept with it, so that a release which appears meanwhile does not move the ground.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import store
from ..check.depth import Told
from ..errors import RunNotFoundError, UsageError
from ..records import to_json
from . import sought, trials
from .candidates import Candidate, Line
from .costs import Costs
from .crew import play_batch
from .groups import deciding
from .journal import Journal
from .plan import COMMAND
from .progress_line import narrowed
from .question import Ending, Find, Kind, Options, Result, Trial
from .readying import ready
from .search import Search
from .timeline import scanned
from .trials import Bench
from .verdicts import Event, Infra, Mark, Observation, Opened

RELEASES = "release"
SCAN_TRIALS = 2  # of a build, where the machine or the network failed
SCAN_FAILURES = 4  # of them in a row, at which a scan stops

# Takes one line for a person about a trial that ended.
Shown = Callable[[str], None]
# Takes the builds to have ready while a step runs.
Ready = Callable[[Sequence[str]], None]


def take_up(
    folder: Path,
    asked: Mapping[str, Any],
    prepare: Callable[[], Mapping[str, Any]],
    *,
    anew: bool,
    finished: bool = False,
) -> tuple[Path, bool]:
    """The run directory of what is asked, and whether it was begun before.

    `prepare` says what else to keep of a new one. anew: leave one that was begun alone. finished:
    take up one that found its boundary too, to ask more about it; it is open again then.
    """
    key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    if not anew:
        for run in store.stored(folder):
            if run.command != COMMAND or _key(run.path) != key:
                continue
            if run.state == "cut off" or (finished and run.finished and _located(run.path)):
                (run.path / store.RESULT).unlink(missing_ok=True)
                return run.path, True
    request = {"key": key, "asked": dict(asked), **prepare()}
    return store.create(folder, COMMAND, request), False


def _key(path: Path) -> str | None:
    try:
        return str(store.request(path).get("key"))
    except RunNotFoundError:
        return None


def _located(path: Path) -> bool:
    result = store.load(path).get("result")
    return isinstance(result, Mapping) and result.get("kind") in set(Find)


@dataclass(frozen=True, slots=True)
class Quest:
    """One line to search: its name in the session, what is sought on it, and how. signature: words
    of another failure that is sought in place of the case's sign, "" for none. marks: a person's
    words about builds of the line that this one is cut out of; they hold here too."""

    name: str
    line: Line
    options: Options
    scan: bool = False
    signature: str = ""
    marks: tuple[Mark, ...] = ()


def kept(quest: Quest) -> dict[str, Any]:
    """A line as it is kept. How long to search is no part of it."""
    line = quest.line
    options = replace(quest.options, budget_seconds=None, budget_trials=None)
    return {
        "name": quest.name,
        "scan": quest.scan,
        "signature": quest.signature,
        "options": to_json(options),
        "candidates": [[c.build, c.opens, c.note] for c in line.candidates],
        "unavailable": dict(line.unavailable),
        "left_out": list(line.left_out),
    }


def restored(record: Mapping[str, Any]) -> Quest:
    """What was kept. UsageError for what this version did not write."""
    try:
        options = dict(record["options"])
        options |= {"find": Find(options["find"]), "costs": Costs(**options["costs"])}
        line = Line(
            tuple(Candidate(*map(str, three)) for three in record["candidates"]),
            {str(build): str(why) for build, why in record["unavailable"].items()},
            tuple(map(str, record["left_out"])),
        )
        words = str(record.get("signature", ""))
        return Quest(str(record["name"]), line, Options(**options), bool(record["scan"]), words)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            "a line of candidates is not as this version keeps them",
            hint="--restart begins the search anew",
        ) from error


def search(
    quest: Quest, bench: Bench, told: Told, shown: Shown, ahead: Ready | None = None
) -> tuple[Journal, Result]:
    """Try builds until there is a result; every trial is in the journal before the next step is
    decided. ahead: told before each step which builds to have ready, as words that open them.

    Errors: UsageError where the journal is of another search; OSError where it cannot be written.
    """
    folder = bench.folder
    journal = open_journal(folder, quest)
    journal.append(Opened())
    engine = engine_of(quest, journal)
    candidates = {candidate.build: candidate for candidate in quest.line.candidates}
    while not isinstance(step := next_step(quest, engine), Result):
        told(", ".join(f"{trial.build[:12]} ({trial.purpose})" for trial in step))
        if ahead is not None:
            ahead([candidates[build].word for build in ready(engine, step)])
        chosen = None if quest.options.mix_hosts else deciding(engine.events)
        with closing(play_batch(bench, step, candidates, chosen)) as ended:
            for came in ended:
                seen = sought.judged(folder, came, quest.signature)
                journal.append(seen)
                engine.add(seen)
                row = trials.row_of(folder, seen) or {}
                shown(narrowed(quest, engine, seen, str(row.get("injected") or "")))
    return journal, step


def open_journal(folder: Path, quest: Quest) -> Journal:
    """The journal of a line. UsageError where there is one of another search.

    How long to search is no part of it: the same search may be gone on with for longer.
    """
    return Journal.open(folder / f"{quest.name}.jsonl", header(folder, quest), replayable(quest))


def replayable(quest: Quest) -> dict[str, Any]:
    """A line as a journal holds it, which may be shown to others: without what opens a build, which
    may be an address with a password."""
    return kept(quest) | {"candidates": [[c.build, "", c.note] for c in quest.line.candidates]}


def header(folder: Path, quest: Quest) -> dict[str, Any]:
    """What the verdicts of a journal hang on: all that was asked, by its hash, and the line."""
    return {
        "asked": str(store.request(folder).get("key")),
        "line": quest.name,
        "candidates": list(quest.line.builds),
    }


def engine_of(quest: Quest, journal: Journal) -> Search:
    """The search as far as its journal has come."""
    events = events_of(quest, journal)
    return Search(quest.line.builds, quest.line.unavailable, events, quest.options)


def events_of(quest: Quest, journal: Journal) -> list[Event]:
    """All that is known of a line: what its journal holds, and what a person said before."""
    return [*quest.marks, *journal.events]


def next_step(quest: Quest, engine: Search) -> Sequence[Trial] | Result:
    """What to try next, or the result: of a search, or of going through the whole line."""
    if not quest.scan:
        return engine.next()
    counted = engine.counted()
    opened = max((i for i, event in enumerate(counted) if isinstance(event, Opened)), default=-1)
    tried: dict[str, int] = {}
    failed: dict[str, int] = {}
    done: set[str] = set()
    in_a_row, why = 0, ""
    for at, event in enumerate(counted):
        if isinstance(event, Observation):
            tried[event.build] = tried.get(event.build, 0) + 1
            # what failed for the machine is tried anew by another process
            if not isinstance(event.verdict, Infra):
                done.add(event.build)
            elif at > opened:
                failed[event.build] = failed.get(event.build, 0) + 1
                in_a_row, why = in_a_row + 1, event.verdict.reason
                continue
            in_a_row = 0
    if in_a_row >= SCAN_FAILURES:
        reason = f"{in_a_row} trials in a row failed for the machine or the network: {why}"
        return Result(Kind.NONE, Ending.INFRA, notes=(reason,))
    marked = {event.build for event in counted if isinstance(event, Mark)}
    wanted = [
        Trial(build, tried.get(build, 0) + 1, "scan")
        for build in quest.line.builds
        if failed.get(build, 0) < SCAN_TRIALS
        and build not in done | marked
        and build not in quest.line.unavailable
    ]
    if wanted:
        return wanted[: quest.options.jobs]
    return scanned(quest.line.builds, counted, quest.options.find, quest.line.unavailable)
