"""Facts of one source, kept within bounds.

Equal facts of a process are one, counted. Of each kind the first and the last stay, with the least
and the greatest of what is measured and what was measured last before a failure; the rest is
counted in `left_out`. So a log of any size becomes a reading of a bounded one.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...escape import printable
from ..facts import TEXT_LENGTH, Certainty, Fact, Value
from ..vocabulary import FIRST
from .line import Found, Line

FIRST_KEPT = 96
LAST_KEPT = 160
# Longest single value, in characters.
VALUE_LENGTH = 4000

# kind → its measured values
MEASURED: Mapping[str, tuple[str, ...]] = {
    "load": (
        "running",
        "waiting",
        "kv_usage",
        "prefix_hit_rate",
        "generation_throughput",
        "preemptions",
        "corrupted",
    ),
    "spec_metrics": ("mean_acceptance_length", "accepted", "drafted", "acceptance_rate"),
}
# Values that differ between lines that say the same.
_OWN: Mapping[str, tuple[str, ...]] = {
    "device_assert": ("block", "thread"),
    "graph_capture": ("done",),
    "hang": ("seconds",),
    "sanitizer_error": ("thread", "block", "address", "distance"),
}
_SECRETS = re.compile(
    r"(?i)(api[-_]?key\W{1,8}|token\W{1,4}|secret\W{1,8}|password\W{1,8}|bearer )[\w\-./+=]{6,}"
    r"|\b(?:hf|sk|ghp|gho|github_pat|glpat|xox[abp])[_-][\w\-]{8,}"
)


@dataclass(slots=True)
class _Kind:
    first: list[Fact] = field(default_factory=list)
    last: OrderedDict[Hashable, Fact] = field(default_factory=OrderedDict)
    places: dict[Hashable, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Measure:
    least: Fact
    greatest: Fact
    first: Fact
    last: Fact
    lines: int


@dataclass(slots=True)
class Keeper:
    """Collects the facts of the source with this index."""

    source: int
    left_out: Counter[str] = field(default_factory=Counter)
    _kinds: dict[str, _Kind] = field(default_factory=dict)
    _measures: dict[tuple[str, str], _Measure] = field(default_factory=dict)
    _latest: dict[str, Fact] = field(default_factory=dict)
    _pinned: list[Fact] = field(default_factory=list)
    _pinned_in: set[int] = field(default_factory=set)

    def add(self, found: Found, read: Line, session: int, certainty: Certainty) -> None:
        """Take one fact that was found while `read` was read."""
        line = found.line or read
        prefix = line.prefix if line.prefix.name or line.prefix.time else read.prefix
        claimed = Certainty.CLAIMED in (certainty, found.certainty)
        fact = Fact(
            kind=found.kind,
            values={name: _clean(value) for name, value in found.values.items()},
            source=self.source,
            line=line.number,
            certainty=Certainty.CLAIMED if claimed else Certainty.OBSERVED,
            rank=prefix.rank and printable(prefix.rank),
            process=prefix.process,
            pid=prefix.pid,
            time=prefix.time or read.prefix.time,
            session=session,
            text=shown(line.text if found.text is None else found.text),
            count=line.prefix.repeats,
            last_line=line.number,
        )
        if fact.kind in MEASURED:
            self._measure(fact)
        if fact.kind in FIRST:
            self._pin(session)
        self._keep(fact)

    def facts(self) -> Iterator[Fact]:
        """All that was kept, in order of line; then the summaries of what was measured."""
        kept: dict[tuple[str, int, Hashable], Fact] = {}
        for kind in self._kinds.values():
            for fact in (*kind.first, *kind.last.values()):
                kept[fact.kind, fact.line, _identity(fact)] = fact
        extremes = [f for m in self._measures.values() for f in (m.least, m.greatest, m.last)]
        for fact in (*self._pinned, *extremes):
            if (fact.kind, fact.line, _identity(fact)) not in kept:
                kept[fact.kind, fact.line, _identity(fact)] = fact
                self.left_out[fact.kind] -= 1
        self.left_out = +self.left_out
        yield from sorted(kept.values(), key=lambda fact: fact.line)
        yield from self._summaries()

    def _keep(self, fact: Fact) -> None:
        kind = self._kinds.setdefault(fact.kind, _Kind())
        identity = _identity(fact)
        place = kind.places.get(identity)
        if place is not None:
            kind.first[place] = _more(kind.first[place], fact)
        elif identity in kind.last:
            kind.last[identity] = _more(kind.last[identity], fact)
        elif len(kind.first) < FIRST_KEPT:
            kind.places[identity] = len(kind.first)
            kind.first.append(fact)
        else:
            kind.last[identity] = fact
            if len(kind.last) > LAST_KEPT:
                kind.last.popitem(last=False)
                self.left_out[fact.kind] += 1

    def _measure(self, fact: Fact) -> None:
        self._latest[fact.kind] = fact
        for name in MEASURED[fact.kind]:
            value = fact.values.get(name)
            if not isinstance(value, int | float):
                continue
            known = self._measures.get((fact.kind, name))
            if known is None:
                self._measures[fact.kind, name] = _Measure(fact, fact, fact, fact, 1)
                continue
            if value < known.least.values[name]:  # type: ignore[operator]
                known.least = fact
            if value > known.greatest.values[name]:  # type: ignore[operator]
                known.greatest = fact
            known.last, known.lines = fact, known.lines + 1

    def _pin(self, session: int) -> None:
        """Keep what was measured last before the first failure of each session."""
        if session not in self._pinned_in and len(self._pinned_in) < FIRST_KEPT:
            self._pinned_in.add(session)
            self._pinned += self._latest.values()

    def _summaries(self) -> Iterator[Fact]:
        for (kind, name), measure in self._measures.items():
            values: dict[str, Value] = {
                "of": kind,
                "field": name,
                "minimum": measure.least.values[name],
                "maximum": measure.greatest.values[name],
                "first": measure.first.values[name],
                "last": measure.last.values[name],
                "lines": measure.lines,
            }
            yield replace(
                measure.first,
                kind="metrics_summary",
                values=values,
                text="",
                count=measure.lines,
                last_line=measure.last.line,
            )


def shown(text: str) -> str:
    """Text of a log as a fact holds it: printable, short, without what looks like a secret."""
    cut = text[: TEXT_LENGTH + 1]
    cut = _SECRETS.sub(lambda found: f"{found[1] or ''}***", cut.strip())
    clean = printable(cut)
    return clean if len(clean) <= TEXT_LENGTH else f"{clean[: TEXT_LENGTH - 1]}…"


def _clean(value: Value) -> Value:
    if isinstance(value, str):
        value = _SECRETS.sub(lambda found: f"{found[1] or ''}***", value[:VALUE_LENGTH])
        return printable(value)
    if isinstance(value, tuple):
        return tuple(printable(v[:VALUE_LENGTH]) if isinstance(v, str) else v for v in value)
    return value


def _identity(fact: Fact) -> Hashable:
    if fact.kind in MEASURED:
        return fact.line
    own = _OWN.get(fact.kind, ())
    values = tuple((name, value) for name, value in fact.values.items() if name not in own)
    return (values, fact.rank, fact.process, fact.pid, fact.session, fact.certainty)


def _more(known: Fact, fact: Fact) -> Fact:
    return replace(known, count=known.count + fact.count, last_line=fact.line)
