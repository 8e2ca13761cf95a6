"""A trial that ended in one line for a person. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .groups import deciding, left_out
from .search import Search
from .verdicts import Bad, Good, Infra, Observation, Other, Untestable, effective

if TYPE_CHECKING:
    from .session import Quest

MOST_SAID = 90  # characters of a reason
HERE = "here"  # the node of this machine
SHORT = 1.0  # seconds of making ready, below which they are not told
MINUTES = 600  # seconds from which a time is told in minutes


def narrowed(quest: Quest, engine: Search, seen: Observation, injected: str = "") -> str:
    """A trial in one line: what came of it, what is left, how long that may take. injected: the
    change that was made to the build on purpose."""
    line = f"{seen.build[:12]:<12}  {_came(seen, injected)}   {seen.seconds:.1f} s{_where(seen)}"
    if why := _not_counted(engine, seen):
        line += f"   {why}"
    line += _setup(seen)
    left = _left(quest, engine)
    return f"{line}   · {left}" if left else line


def varied(seen: Observation, words: str, injected: str = "") -> str:
    """The same of a variation of a build. words: which. It is no candidate, so nothing is left."""
    return f"{words}   {_came(seen, injected)}   {seen.seconds:.1f} s{_setup(seen)}"


def _came(seen: Observation, injected: str) -> str:
    match seen.verdict:
        case Bad(signature=said):
            what = f"bad   {said}"
        case Good():
            what = f"good   with {injected} injected" if injected else "good"
        case Other(signature=said):
            what = f"another fault   {said}"
        case Untestable(reason=said):
            what = f"untestable   {said}"
        case Infra(reason=said):
            what = f"failed   {said}"
    return what if len(what) <= MOST_SAID else f"{what[: MOST_SAID - 1]}…"


def _setup(seen: Observation) -> str:
    return f" and {seen.setup:.1f} s for its environment" if seen.setup >= SHORT else ""


def _where(seen: Observation) -> str:
    """The node of a trial and its GPU, "" for one of this machine without."""
    place = seen.place
    if place is None or (place.node == HERE and not place.gpu):
        return ""
    return " on " + " ".join(
        part for part in (f"node {place.node}" * (place.node != HERE), place.gpu) if part
    )


def _not_counted(engine: Search, seen: Observation) -> str:
    """Why a trial does not count beside the others, "" where it does."""
    chosen = deciding(engine.events)
    if engine.options.mix_hosts or chosen is None:
        return ""
    return left_out(seen, chosen)


def _left(quest: Quest, engine: Search) -> str:
    """How many builds may be the boundary, and what it takes to tell; "" before that is known."""
    if quest.scan:
        seen = [one for one in effective(engine.events) if isinstance(one, Observation)]
        each = sum(one.seconds + one.setup for one in seen) / len(seen) if seen else 0.0
        line = quest.line
        count = len(line.builds) - len(line.unavailable) - len({one.build for one in seen})
        return f"{count} left, {_time(count * each)}" if count > 0 else ""
    now = engine.progress()
    if not now.trials_left or now.seconds_left is None:
        return ""
    trials = math.ceil(now.trials_left)
    many = f"{trials} trial{'s'[: trials != 1]} or so"
    return f"{now.candidates} left, {many}, {_time(now.seconds_left)}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < MINUTES else f"{seconds / 60:.0f} min"
