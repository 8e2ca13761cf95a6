"""The boundaries of a line besides the one that was found.

Each stretch between two builds that were tried and whose verdicts differ is a line of its own.

A build that is good right of a bad one shows that there are several. Halving each such stretch
finds one boundary in it, and what that shows anew is gone into in the same way; a defect that came
and went between two builds that are alike stays unseen, which only trying every build shows.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .candidates import Line
from .question import Options
from .record import Stage, result_record
from .session import Quest
from .timeline import Flip, flips, states
from .verdicts import Event, Mark, effective

STAGE = "flip"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Two builds whose verdicts differ, in the order of the line."""

    flip: Flip

    @property
    def name(self) -> str:
        return f"{STAGE}-{self.flip.previous}-{self.flip.build}"


def stretches(stage: Stage) -> Iterator[Stretch]:
    """The stretches of a line, its own boundary aside; also between two builds that are adjacent,
    which a fault that shows only sometimes takes more trials to tell apart."""
    own = {stage.result.build, stage.result.previous}
    for flip in flips(states(stage.line.builds, stage.events)):
        if {flip.previous, flip.build} != own:
            yield Stretch(flip)


def quest(stage: Stage, stretch: Stretch, options: Options, signature: str) -> Quest:
    """The search in a stretch; its ends are tried again there."""
    builds = stage.line.builds
    first, last = builds.index(stretch.flip.previous), builds.index(stretch.flip.build)
    inside = stage.line.candidates[first : last + 1]
    names = {one.build for one in inside}
    gone = {build: why for build, why in stage.line.unavailable.items() if build in names}
    wanted = replace(options, find=stretch.flip.find, ends_given=True)
    said = marks(stage.events, names)
    return Quest(stretch.name, Line(inside, gone), wanted, signature=signature, marks=said)


def marks(events: Iterable[Event], builds: Container[str]) -> tuple[Mark, ...]:
    """The words of a person about some builds of a line."""
    every = [event for event in effective(events) if isinstance(event, Mark)]
    return tuple(mark for mark in every if mark.build in builds)


def search_all(
    stage: Stage, options: Options, signature: str, search: Callable[[Quest], Stage]
) -> list[Stage]:
    """Search every stretch of a line, and those that a search shows anew; oldest first."""
    found: list[Stage] = []
    waiting = [(stage, one) for one in stretches(stage)]
    gone_into: set[str] = set()
    while waiting:
        of, stretch = waiting.pop(0)
        if stretch.name in gone_into:
            continue
        gone_into.add(stretch.name)
        more = replace(search(quest(of, stretch, options, signature)), name=STAGE)
        found.append(more)
        waiting += [(more, one) for one in stretches(more)]
    order = stage.line.builds
    return sorted(found, key=lambda one: order.index(one.line.builds[0]))


def records(found: Sequence[Stage]) -> list[dict[str, Any]]:
    """The part `flips` of a record: a result each, and which way it goes."""
    return [{"find": str(one.find), **result_record(one.result)} for one in found]
