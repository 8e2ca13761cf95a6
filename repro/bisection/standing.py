"""How far a session is, as its journals say, specrepro/session@1. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..records import to_json
from . import session
from .beside import Beside
from .journal import Journal
from .other_flips import STAGE, marks
from .question import Find, Kind, Result, Trial
from .search import OTHER_TRIALS
from .session import Quest
from .suspects import Outcome, carriers, outcome
from .tally import NEVER, tallies
from .timeline import states
from .variation import Fault, Variation
from .verdicts import Observation, effective

SCHEMA = "specrepro/session@1"
COMMITS = "commit-"  # how the names of lines of commits begin


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a session with its journal."""

    quest: Quest
    journal: Journal

    @property
    def step(self) -> Sequence[Trial] | Result:
        """The trials to run next, or the result."""
        return session.next_step(self.quest, session.engine_of(self.quest, self.journal))


def marked(lines: Sequence[Line]) -> list[Line]:
    """The same, each stretch between releases with the marks that theirs has."""
    releases = next((ln for ln in lines if ln.quest.name == session.RELEASES), None)
    if releases is None:
        return list(lines)
    events = releases.journal.events
    return [
        replace(ln, quest=replace(ln.quest, marks=marks(events, ln.quest.line.builds)))
        if ln.quest.name.startswith(f"{STAGE}-")
        else ln
        for ln in lines
    ]


def standing(
    about: Mapping[str, Any], lines: Sequence[Line], besides: Sequence[Beside]
) -> dict[str, Any]:
    """The record. about: run, and what is so of all of it."""
    lines = marked(lines)
    now = boundary(lines)
    return {
        "schema": SCHEMA,
        **about,
        "lines": [_line(line) for line in lines],
        "variations": [_beside(one, lines, now) for one in besides],
    }


def boundary(lines: Sequence[Line]) -> tuple[str, str] | None:
    """The bad and the good build of the boundary that variations are tried of: the last one that
    is confirmed, a boundary between commits before that between releases. None: there is none."""
    for line in reversed(lines):
        result = line.step
        if not (line.quest.name == session.RELEASES or line.quest.name.startswith(COMMITS)):
            continue
        if isinstance(result, Result) and str(result.kind) in set(Find):
            pair = (str(result.build), str(result.previous))
            return pair if result.kind is Kind.FIRST_BAD else (pair[1], pair[0])
    return None


def _line(line: Line) -> dict[str, Any]:
    step = line.step
    engine = session.engine_of(line.quest, line.journal)
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


def _beside(one: Beside, lines: Sequence[Line], now: tuple[str, str] | None) -> dict[str, Any]:
    """The variations of a boundary that were tried, each with what came of it."""
    seen = [e for e in effective(one.journal.events) if isinstance(e, Observation)]
    ways = {e.build: e.varied for e in seen if e.varied is not None}
    came = _outcomes(one, lines)
    decided = [(way, found) for name, way in ways.items() if (found := came.get(name)) is not None]
    carrying = {variation.name for variation in carriers(decided)}
    return {
        "bad": one.bad,
        "good": one.good,
        "current": now == (one.bad, one.good),
        "trials": len(seen),
        "tried": [
            _tried(way, came.get(name), sum(e.build == name for e in seen), name in carrying)
            for name, way in ways.items()
        ],
    }


def _outcomes(one: Beside, lines: Sequence[Line]) -> dict[str, Outcome | None]:
    """Name of a variation → what its trials say; how often the fault shows is known of the line
    that both builds are of."""
    line = next(
        (ln for ln in reversed(lines) if {one.bad, one.good} <= set(ln.quest.line.builds)), None
    )
    if line is None:
        return {}
    events = [*line.journal.events, *one.journal.events]
    found = tallies(events, others=OTHER_TRIALS)
    bad = found.get(one.bad, NEVER)
    return {name: outcome(tally, bad, line.quest.options) for name, tally in found.items()}


def _tried(way: Variation, came: Outcome | None, trials: int, carries: bool) -> dict[str, Any]:
    return {
        "build": way.build,
        "shows": way.shows,
        "varied": str(way.varied),
        "changes": dict(way.changes),
        "fault": None if came is None else str(came.fault),
        "carries": carries,
        "chance": 0.0 if came is None else came.chance,
        "reason": "" if came is None or came.fault is not Fault.UNKNOWN else came.reason,
        "trials": trials,
    }
