"""What carries the fault at a boundary: variations of its two builds, tried and written down.

A journal of its own beside those of the lines, so that this too goes on where it was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import store
from ..check.depth import Told
from . import beside, packages, sought, suspects, trials
from .candidates import Candidate, Line
from .packages import Packages
from .pair import Pair
from .progress_line import varied
from .question import Options
from .record import Stage
from .search import OTHER_TRIALS
from .suspects import Outcome
from .tally import tallies
from .trials import Bench, row_of
from .variation import Fault, Variation, Varied
from .verdicts import Event, Observation, Opened, effective

if TYPE_CHECKING:
    from ..check.engine.variations import Crossing, Switch


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked about a boundary. switches: () for nothing. crossing: None for no packages of
    the other build. signature: as that of the search."""

    switches: Sequence[Switch] = ()
    crossing: Crossing | None = None
    signature: str = ""

    def __bool__(self) -> bool:
        return bool(self.switches) or self.crossing is not None


@dataclass(frozen=True, slots=True)
class Closer:
    """What came of it. parts: `switches`, `cross_tests`, `unknown` and `notes` of a
    boundary. stage: its
    trials. whole: False where the machine or the budget ended it."""

    parts: Mapping[str, list[Any]]
    stage: Stage
    whole: bool


def look_closer(
    wanted: Wanted,
    both: Pair,
    stage: Stage,
    bench: Bench,
    options: Options,
    told: Told,
    shown: Callable[[str], None],
) -> Closer:
    """Try the variations that are wanted until each has an outcome.

    Errors: UsageError where the journal is of another search; OSError where it cannot be written.
    """
    set_to = {s.name: str(s.value) for s in wanted.switches if s.value is not None}
    both = replace(both, settings={**set_to, **both.settings})
    key = str(store.request(bench.folder).get("key"))
    journal = beside.open_journal(bench.folder, key, both.bad, both.good)
    journal.append(Opened())
    crossed = Packages()
    if wanted.crossing is not None:
        crossed = packages.between(wanted.crossing, both, told)
    unknown = list(crossed.unknown)
    notes = []
    if crossed.same:
        said = f"{crossed.same} packages are installed beside both builds, in the same versions"
        notes.append(f"{said}: none of them carries it")
    whole = not crossed.temporary
    while True:
        tried, pending = _walk(wanted, both, crossed, [*stage.events, *journal.events], options)
        if pending is None:
            break
        if said := _spent([*stage.events, *journal.events], options):
            unknown.append(f"what carries the fault: {said}")
            whole = False
            break
        words = pending.words(both.other(pending.build))
        told(words)
        came = _try(pending, wanted, crossed, both, bench, journal.events)
        seen = sought.judged(bench.folder, came, wanted.signature)
        journal.append(seen)
        record = row_of(bench.folder, seen) or {}
        shown(varied(seen, words, str(record.get("injected") or "")))
    events = effective(journal.events)
    rows = {
        e.log: row
        for e in events
        if isinstance(e, Observation) and (row := row_of(bench.folder, e)) is not None
    }
    parts: dict[str, list[Any]] = {
        "switches": [_row(v, o, both, events) for v, o in tried if v.varied is Varied.SWITCH],
        "cross_tests": [
            *(
                _row(v, o, both, events) | {"was": crossed.was(v)}
                for v, o in tried
                if v.varied is Varied.PACKAGES
            ),
            *(
                _row(v, Outcome(Fault.UNKNOWN, why), both, ()) | {"was": crossed.was(v)}
                for v, why in crossed.never(both)
            ),
        ],
        "unknown": unknown,
        "notes": notes,
    }
    for variation in suspects.carriers(tried):
        _row_of(parts, variation)["carries"] = True
    after = Stage(beside.STAGE, Line(()), stage.find, journal.events, rows, stage.result)
    return Closer(parts, after, whole and not any(o.temporary for _, o in tried))


def _walk(
    wanted: Wanted, both: Pair, crossed: Packages, events: Sequence[Event], options: Options
) -> tuple[list[tuple[Variation, Outcome]], Variation | None]:
    """The variations that have an outcome, and the first one that has none."""
    found = tallies(events, others=OTHER_TRIALS)

    def decided(one: Variation) -> Outcome | None:
        return suspects.outcome(found.get(one.name), found[both.bad], options)

    tried: list[tuple[Variation, Outcome]] = []
    for one in _variations(wanted, both, crossed, decided):
        came = decided(one)
        if came is None:
            return tried, one
        tried.append((one, came))
    return tried, None


def _variations(
    wanted: Wanted, both: Pair, crossed: Packages, decided: suspects.Decided
) -> Iterator[Variation]:
    known = [s for s in wanted.switches if s.name in both.settings]
    alternatives = {s.name: [c for c in s.choices if c != both.settings[s.name]] for s in known}
    # a default decides only where the experiment leaves the switch to the engine
    moved = {
        s.name: both.settings[s.name] for s in known if s.name in both.moved and s.value is None
    }
    yield from suspects.switched(both.bad, both.good, alternatives, moved, decided)
    for build in (both.bad, both.good):
        changes = crossed.changes.get(build, ())
        yield from suspects.crossed(build, build == both.bad, changes, decided)


def _try(
    one: Variation,
    wanted: Wanted,
    crossed: Packages,
    both: Pair,
    bench: Bench,
    events: Sequence[Event],
) -> Observation:
    asked = bench.asked
    if one.varied is Varied.SWITCH:
        fixed = {**asked.question.fixed, **dict(one.changes)}
        bench = replace(bench, asked=replace(asked, question=replace(asked.question, fixed=fixed)))
    elif wanted.crossing is not None:
        bench = replace(bench, depth=crossed.depth(one, wanted.crossing))
    number = 1 + sum(isinstance(e, Observation) and e.build == one.name for e in events)
    seen = trials.run(bench, Candidate(one.name, both.words[one.build]), number)
    return replace(seen, varied=one)


def _spent(events: Sequence[Event], options: Options) -> str:
    seen = [e for e in effective(list(events)) if isinstance(e, Observation)]
    seconds = sum(one.seconds + one.setup for one in seen)
    if options.budget_trials is not None and len(seen) >= options.budget_trials:
        return f"all {len(seen)} trials of the budget are spent"
    if options.budget_seconds is not None and seconds >= options.budget_seconds:
        return f"{seconds:.0f} s are spent, all of the budget"
    return ""


def _row(one: Variation, came: Outcome, both: Pair, events: Sequence[Event]) -> dict[str, Any]:
    mine = [e for e in events if isinstance(e, Observation) and e.build == one.name]
    was = {name: both.settings.get(name) for name, _ in one.changes}
    return {
        "build": one.build,
        "shows": one.shows,
        "changes": dict(one.changes),
        "was": was,
        "moved": sorted(both.moved & was.keys()) if one.varied is Varied.SWITCH else [],
        "fault": str(came.fault),
        "carries": False,
        "chance": came.chance,
        "reason": came.reason,
        "trials": len(mine),
        "logs": [e.log for e in mine],
    }


def _row_of(parts: Mapping[str, list[Any]], one: Variation) -> dict[str, Any]:
    rows = parts["switches" if one.varied is Varied.SWITCH else "cross_tests"]
    found: dict[str, Any] = next(
        r for r in rows if (r["build"], r["changes"]) == (one.build, dict(one.changes))
    )
    return found
