"""Facts of one source, kept within bounds.

Equal facts of a process are one, counted. Of each kind the first and the last stay, with the least
and the greatest of what is measured and what was measured last before a failure; the rest is
counted in `left_out`. So a log of any size becomes a reading of a bounded one.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...escape import printable
from ..facts import TEXT_LENGTH, Certainty, Fact, Value
from ..vocabulary import FIRST
from .line import Found, Line
from .patterns import lazily

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
_SECRETS = lazily(
    r"(?i)(api[-_]?keys?['\"]?\s{0,2}[=: ]\s{0,2}[\[('\"]{0,3}|"
    r"(?:token|secret|password)['\"]?\s{0,2}[=:]\s{0,2}['\"]{0,2}|bearer )[\w\-./+=]{6,}"
    r"|\b(?:hf_[a-z0-9]{10,}|(?:sk|ghp|gho|github_pat|glpat|xox[abp])[_-][\w\-]{8,})"
)
# One of these is in whatever the pattern finds; looking for them is cheaper.
_HINTS = (
    "api_key", "api-key", "apikey", "token=", "token:", "token'", 'token"', "token ", "secret",
    "password", "bearer ", "hf_", "sk_", "sk-", "ghp", "gho", "github_pat", "glpat", "xox",
)  # fmt: skip


@dataclass(slots=True)
class _Entry:
    fact: Fact
    count: int
    last: int

    def whole(self) -> Fact:
        if self.count == self.fact.count and self.last == self.fact.last_line:
            return self.fact
        return replace(self.fact, count=self.count, last_line=self.last)


@dataclass(slots=True)
class _Kind:
    first: dict[Hashable, _Entry] = field(default_factory=dict)
    last: OrderedDict[Hashable, _Entry] = field(default_factory=OrderedDict)


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
        values = {name: _clean(value) for name, value in found.values.items()}
        # what is measured is kept line by line
        identity: Hashable = line.number
        if found.kind not in MEASURED:
            own = _OWN.get(found.kind, ())
            said = tuple(item for item in values.items() if item[0] not in own)
            identity = (said, prefix.rank, prefix.process, prefix.pid, session, claimed)
        kind = self._kinds.setdefault(found.kind, _Kind())
        known = kind.first.get(identity) or kind.last.get(identity)
        if known is not None:
            known.count += line.prefix.repeats
            known.last = line.number
            return
        fact = Fact(
            kind=found.kind,
            values=values,
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
        entry = _Entry(fact, fact.count, fact.last_line)
        if len(kind.first) < FIRST_KEPT:
            kind.first[identity] = entry
            return
        kind.last[identity] = entry
        if len(kind.last) > LAST_KEPT:
            kind.last.popitem(last=False)
            self.left_out[fact.kind] += 1

    def facts(self) -> Iterator[Fact]:
        """All that was kept, in order of line; then the summaries of what was measured."""
        kept = [
            entry.whole()
            for kind in self._kinds.values()
            for entry in (*kind.first.values(), *kind.last.values())
        ]
        # measured facts are told apart by their line
        there = {(fact.kind, fact.line) for fact in kept if fact.kind in MEASURED}
        extremes = [f for m in self._measures.values() for f in (m.least, m.greatest, m.last)]
        for fact in (*self._pinned, *extremes):
            if (fact.kind, fact.line) not in there:
                there.add((fact.kind, fact.line))
                kept.append(fact)
                self.left_out[fact.kind] -= 1
        self.left_out = +self.left_out
        yield from sorted(kept, key=lambda fact: fact.line)
        yield from self._summaries()

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
    clean = printable(_without_secrets(text[: TEXT_LENGTH + 1].strip()))
    return clean if len(clean) <= TEXT_LENGTH else f"{clean[: TEXT_LENGTH - 1]}…"


def _without_secrets(text: str) -> str:
    low = text.lower()
    if not any(hint in low for hint in _HINTS):
        return text
    return _SECRETS.sub(lambda found: f"{found[1] or ''}***", text)


def _clean(value: Value) -> Value:
    if isinstance(value, str):
        return printable(_without_secrets(value[:VALUE_LENGTH]))
    if isinstance(value, tuple):
        return tuple(printable(v[:VALUE_LENGTH]) if isinstance(v, str) else v for v in value)
    return value
