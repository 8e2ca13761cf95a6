"""What carries the fault at a boundary: variations of its two builds, tried and written down.

A journal of its own beside those of the lines, so that this too goes on where it was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .. import store
from ..check.depth import Told
from ..errors import UntestableError
from ..escape import printable
from . import sought, suspects, trials
from .boundary import excluded
from .candidates import Candidate, Line
from .journal import Journal
from .question import Find, Options
from .record import KINDS, Stage
from .search import OTHER_TRIALS
from .suspects import Fault, Outcome, Variation, Varied
from .tally import tallies
from .trials import Bench, row_of
from .verdicts import Bad, Event, Observation, Opened, effective

if TYPE_CHECKING:
    from ..check.engine.variations import Crossing, Installed, Switch

STAGE = "variation"


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
class Pair:
    """The two builds at a boundary, and what opens them. settings: of the bad one, as its engine
    came up. moved: switches whose default is another one on the other side."""

    bad: str
    good: str
    words: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)
    moved: frozenset[str] = frozenset()

    def other(self, build: str) -> str:
        return self.good if build == self.bad else self.bad


@dataclass(frozen=True, slots=True)
class Closer:
    """What came of it. parts: `switches`, `cross_tests` and `unknown` of a boundary. stage: its
    trials. whole: False where the machine or the budget ended it."""

    parts: Mapping[str, list[Any]]
    stage: Stage
    whole: bool


@dataclass(frozen=True, slots=True)
class _Packages:
    """What can be crossed. changes: build → packages of the other one, its requirements allowing
    it; refused: build → (change, why not). versions: build → package → version there."""

    changes: Mapping[str, tuple[suspects.Change, ...]] = field(default_factory=dict)
    refused: Mapping[str, list[tuple[suspects.Change, str]]] = field(default_factory=dict)
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    python: str = ""
    unknown: tuple[str, ...] = ()
    temporary: bool = False


def pair(stage: Stage, defaults: Sequence[Mapping[str, Any]]) -> Pair | None:
    """The builds of a confirmed boundary; None where it is not confirmed. defaults: as the part
    `defaults` of a boundary."""
    result = stage.result
    if str(result.kind) not in set(Find) or result.build is None or result.previous is None:
        return None
    bad, good = result.build, result.previous
    if stage.find is Find.FIRST_GOOD:
        bad, good = good, bad
    words = {c.build: c.word for c in stage.line.candidates if c.build in {bad, good}}
    settings: dict[str, str] = {}
    for event in effective(list(stage.events)):
        if isinstance(event, Observation) and event.build == bad and isinstance(event.verdict, Bad):
            for acting in (stage.rows.get(event.log) or {}).get("exposure", ()):
                settings |= {str(k): str(v) for k, v in acting["settings"].items()}
    return Pair(bad, good, words, settings, frozenset(str(one["setting"]) for one in defaults))


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
    header = {"asked": key, "line": STAGE, "bad": both.bad, "good": both.good}
    path = bench.folder / f"{STAGE}-{both.bad}-{both.good}.jsonl"
    journal = Journal.open(path, header)
    journal.append(Opened())
    packages = _Packages() if wanted.crossing is None else _packages(wanted.crossing, both, told)
    unknown = list(packages.unknown)
    whole = not packages.temporary
    while True:
        tried, pending = _walk(wanted, both, packages, [*stage.events, *journal.events], options)
        if pending is None:
            break
        if said := _spent([*stage.events, *journal.events], options):
            unknown.append(f"what carries the fault: {said}")
            whole = False
            break
        told(words(pending, both))
        came = _try(pending, wanted, both, packages, bench, journal.events)
        seen = sought.judged(bench.folder, came, wanted.signature)
        journal.append(seen)
        kind = KINDS[type(seen.verdict)]
        shown(f"{words(pending, both)}   {kind}   {seen.seconds + seen.setup:.1f} s")
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
                _row(v, o, both, events) | {"was": _was(v, packages)}
                for v, o in tried
                if v.varied is Varied.PACKAGES
            ),
            *_refused(packages, both),
        ],
        "unknown": unknown,
    }
    for variation in suspects.carriers(tried):
        _row_of(parts, variation)["carries"] = True
    after = Stage(STAGE, Line(()), stage.find, journal.events, rows, stage.result)
    return Closer(parts, after, whole and not any(o.temporary for _, o in tried))


def words(one: Variation, both: Pair) -> str:
    """A variation in words."""
    if one.varied is Varied.SWITCH:
        return f"{one.build} with {', '.join(' '.join(change) for change in one.changes)}"
    some = ", ".join(" ".join(change) for change in one.changes[:3])
    more = f" and {len(one.changes) - 3} more" if len(one.changes) > 3 else ""
    return f"{one.build} with packages of {both.other(one.build)}: {some}{more}"


def _walk(
    wanted: Wanted, both: Pair, packages: _Packages, events: Sequence[Event], options: Options
) -> tuple[list[tuple[Variation, Outcome]], Variation | None]:
    """The variations that have an outcome, and the first one that has none."""
    found = tallies(events, others=OTHER_TRIALS)

    def decided(one: Variation) -> Outcome | None:
        return suspects.outcome(found.get(one.name), found[both.bad], options)

    tried: list[tuple[Variation, Outcome]] = []
    for one in _variations(wanted, both, packages, decided):
        came = decided(one)
        if came is None:
            return tried, one
        tried.append((one, came))
    return tried, None


def _variations(
    wanted: Wanted, both: Pair, packages: _Packages, decided: suspects.Decided
) -> Iterator[Variation]:
    known = [s for s in wanted.switches if s.name in both.settings]
    alternatives = {s.name: [c for c in s.choices if c != both.settings[s.name]] for s in known}
    # a default decides only where the experiment leaves the switch to the engine
    moved = {
        s.name: both.settings[s.name] for s in known if s.name in both.moved and s.value is None
    }
    yield from suspects.switched(both.bad, both.good, alternatives, moved, decided)
    for build in (both.bad, both.good):
        changes = packages.changes.get(build, ())
        yield from suspects.crossed(build, build == both.bad, changes, decided)


def _try(
    one: Variation,
    wanted: Wanted,
    both: Pair,
    packages: _Packages,
    bench: Bench,
    events: Sequence[Event],
) -> Observation:
    asked = bench.asked
    if one.varied is Varied.SWITCH:
        fixed = {**asked.question.fixed, **dict(one.changes)}
        bench = replace(bench, asked=replace(asked, question=replace(asked.question, fixed=fixed)))
    elif wanted.crossing is not None:
        # all else stays as it is in the build's own environment, whatever is newer by now
        every = {**packages.versions[one.build], **dict(one.changes)}
        limits = [f"{name}=={version}" for name, version in sorted(every.items())]
        bench = replace(bench, depth=wanted.crossing.depth(limits, packages.python))
    number = 1 + sum(isinstance(e, Observation) and e.build == one.name for e in events)
    return trials.run(bench, Candidate(one.name, both.words[one.build]), number)


def _packages(crossing: Crossing, both: Pair, told: Told) -> _Packages:
    inside: dict[str, Installed] = {}
    for build in (both.bad, both.good):
        told(f"which packages {build} is installed with")
        try:
            inside[build] = crossing.installed(both.words[build])
        except UntestableError as error:
            return _Packages(unknown=(f"packages: {error}",), temporary=error.temporary)
    bad, good = inside[both.bad], inside[both.good]
    if bad.python != good.python:
        said = f"packages: one build runs on Python {bad.python}, the other on {good.python}"
        return _Packages(unknown=(said,))
    shared = sorted(bad.packages.keys() & good.packages.keys())
    differ = [name for name in shared if bad.packages[name] != good.packages[name]]
    changes: dict[str, tuple[suspects.Change, ...]] = {}
    refused: dict[str, list[tuple[suspects.Change, str]]] = {}
    for build, own, other in ((both.bad, bad, good), (both.good, good, bad)):
        every = [(name, other.packages[name]) for name in differ]
        why = {c: excluded(own.metadata, *c) for c in every}
        changes[build] = tuple(c for c in every if not why[c])
        refused[build] = [(c, said) for c, said in why.items() if said]
    unknown = []
    if not differ:
        unknown.append("packages: both builds are installed with the same versions")
    if alone := sorted(bad.packages.keys() ^ good.packages.keys()):
        unknown.append(f"packages that one of the two has alone: {printable(', '.join(alone))}")
    versions = {both.bad: bad.packages, both.good: good.packages}
    return _Packages(changes, refused, versions, bad.python, tuple(unknown))


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


def _was(one: Variation, packages: _Packages) -> dict[str, str | None]:
    here = packages.versions.get(one.build, {})
    return {name: here.get(name) for name, _ in one.changes}


def _refused(packages: _Packages, both: Pair) -> Iterator[dict[str, Any]]:
    for build, every in packages.refused.items():
        for change, why in every:
            one = Variation(build, build == both.bad, Varied.PACKAGES, (change,))
            row = _row(one, Outcome(Fault.UNKNOWN, why), both, ())
            yield row | {"was": _was(one, packages)}


def _row_of(parts: Mapping[str, list[Any]], one: Variation) -> dict[str, Any]:
    rows = parts["switches" if one.varied is Varied.SWITCH else "cross_tests"]
    found: dict[str, Any] = next(
        r for r in rows if (r["build"], r["changes"]) == (one.build, dict(one.changes))
    )
    return found
