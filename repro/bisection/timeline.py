"""Every build of a line with its verdict, and where the verdict changes. Pure.

A bisection shows one boundary; only all of them together show a defect that came, went and came
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .question import Ending, Find, Kind, Result
from .verdicts import Bad, Event, Good, Mark, Marked, Observation, Untestable, effective


@dataclass(frozen=True, slots=True)
class Flip:
    """The verdict changes from `previous` to `build`; `between` lie builds that tell nothing."""

    find: Find
    previous: str
    build: str
    between: tuple[str, ...]


def states(line: Sequence[str], events: Iterable[Event]) -> dict[str, str]:
    """Build → `good`, `bad` or `unknown`, of the whole line in its order."""
    found = dict.fromkeys(line, "unknown")
    marked: dict[str, str] = {}
    for event in effective(list(events)):
        if isinstance(event, Mark):
            said = event.verdict
            marked[event.build] = "unknown" if said is Marked.SKIP else str(said)
        elif isinstance(event, Observation) and event.build in found:
            # a fault that was seen once is there
            if isinstance(event.verdict, Bad):
                found[event.build] = "bad"
            elif isinstance(event.verdict, Good) and found[event.build] == "unknown":
                found[event.build] = "good"
    return {build: marked.get(build, state) for build, state in found.items()}


def flips(line: Mapping[str, str]) -> list[Flip]:
    """Where the verdict changes, oldest first."""
    found: list[Flip] = []
    last, between = "", list[str]()
    for build, state in line.items():
        if state == "unknown":
            between.append(build)
            continue
        if last and line[last] != state:
            find = Find.FIRST_BAD if state == "bad" else Find.FIRST_GOOD
            found.append(Flip(find, last, build, tuple(between)))
        last, between = build, []
    return found


def scanned(
    line: Sequence[str],
    events: Sequence[Event],
    find: Find,
    unavailable: Mapping[str, str],
) -> Result:
    """The result of having tried every build: the newest change of the kind that is sought."""
    state = states(line, events)
    every = flips(state)
    sought = [flip for flip in every if flip.find is find]
    tested = {
        event.build: event.verdict.reason
        for event in effective(list(events))
        if isinstance(event, Observation) and isinstance(event.verdict, Untestable)
    }
    notes = [
        f"{'bad' if flip.find is Find.FIRST_BAD else 'good'} again from {flip.build} on"
        for flip in every[1:]
    ]
    if not sought:
        decided = sorted({one for one in state.values() if one != "unknown"})
        said = f"every build that could be tested is {decided[0]}" if len(decided) == 1 else ""
        return Result(
            Kind.NONE,
            Ending.LOCATED if decided else Ending.UNTESTABLE,
            unavailable=dict(unavailable),
            tested=tested,
            notes=(*notes, *([said] if said else ["no change of the kind that was sought"])),
        )
    flip = sought[-1]
    candidates = (*flip.between, flip.build)
    return Result(
        Kind(str(find)) if not flip.between else Kind.NARROWED,
        Ending.LOCATED if not flip.between else Ending.UNTESTABLE,
        flip.build,
        flip.previous,
        1.0 if not flip.between else 1 / len(candidates),
        candidates,
        {build: why for build, why in tested.items() if build in flip.between},
        (),
        {build: why for build, why in unavailable.items() if build in flip.between},
        None,
        tuple(notes),
    )
