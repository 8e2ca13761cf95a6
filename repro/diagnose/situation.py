"""What is known of one incident: named values, each with the lines it was read from.

Rules are written against these names; `settings.py`, `symptoms.py` and `acceptance.py` fill them
from facts. A name that is missing is *unknown*; one in `absent` was looked for where it would have
been seen, and is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from .facts import Certainty, Fact

Scalar = bool | int | float | str
# A statement is shown with so many lines at most.
MOST_REFS = 8


class How(StrEnum):
    """Where a value comes from, the surest first."""

    OBSERVED = "observed"  # a line says it
    DERIVED = "derived"  # it follows from lines that say something else
    CLAIMED = "claimed"  # a person says it
    DEFAULT = "default"  # nothing was said; the release takes this if nothing is given


SURENESS = {how: rank for rank, how in enumerate(How)}


class Ref(NamedTuple):
    """A line: the index of its source, and its number in the file, from 1."""

    source: int
    line: int


class Seen(NamedTuple):
    """The values of a name, most of them one, and where they were read.

    each: the lines of each value, in the order of `values`; empty where they are not told apart.
    """

    values: tuple[Scalar, ...]
    how: How
    refs: tuple[Ref, ...] = ()
    each: tuple[tuple[Ref, ...], ...] = ()

    def only(self, wanted: Sequence[bool]) -> Seen:
        """The wanted ones of the values, with their lines."""
        if not self.each or all(wanted) or not any(wanted):
            return self
        kept = [i for i, want in enumerate(wanted) if want]
        lines = tuple(sorted({ref for i in kept for ref in self.each[i]}))[:MOST_REFS]
        return Seen(tuple(self.values[i] for i in kept), self.how, lines)


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything known of one incident, by name."""

    seen: Mapping[str, Seen] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()

    def get(self, name: str) -> Seen | None:
        return self.seen.get(name)

    def value(self, name: str) -> Scalar | None:
        """The first value of a name, None where nothing was seen of it."""
        seen = self.seen.get(name)
        return seen.values[0] if seen else None

    def has(self, name: str, value: Scalar) -> bool:
        seen = self.seen.get(name)
        return seen is not None and value in seen.values


class Notes:
    """Collects what is seen; surer ways to know replace weaker ones."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self.absent: set[str] = set()

    def put(
        self,
        name: str,
        value: Scalar | Iterable[Scalar] | None,
        facts: Iterable[Fact] = (),
        how: How | None = None,
    ) -> None:
        """Note a value (or several) of `name`; nothing for None or an empty list."""
        if value is None:
            return
        values = (value,) if isinstance(value, (str, int, float, bool)) else tuple(value)
        values = tuple(dict.fromkeys(values))
        if not values:
            return
        given = list(facts)
        how = how or certainty(given)
        have = self.seen.get(name)
        if have is None or SURENESS[how] < SURENESS[have.how]:
            self.seen[name] = Seen(values, how, refs(given))

    def each(self, name: str, pairs: Iterable[tuple[Scalar | None, Fact]]) -> None:
        """Note several values of a name, each with the facts that say it."""
        groups: dict[Scalar, list[Fact]] = {}
        for value, fact in pairs:
            if value not in (None, ""):
                groups.setdefault(value, []).append(fact)
        facts = [fact for group in groups.values() for fact in group]
        before = self.seen.get(name)
        self.put(name, list(groups), facts)
        now = self.seen.get(name)
        if now is not None and now is not before:
            lines = tuple(refs(group) for group in groups.values())
            self.seen[name] = Seen(now.values, now.how, now.refs, lines)

    def add(self, name: str, value: Scalar, facts: Iterable[Fact] = ()) -> None:
        """One more value of a name that may have several."""
        have = self.seen.get(name)
        if have is None or have.how is How.CLAIMED:
            self.put(name, value, facts)
        elif value not in have.values:
            lines = tuple(sorted({*have.refs, *refs(facts)}))[:MOST_REFS]
            self.seen[name] = Seen((*have.values, value), have.how, lines)

    def first(self, name: str) -> Scalar | None:
        seen = self.seen.get(name)
        return seen.values[0] if seen else None

    def done(self) -> Situation:
        return Situation(dict(self.seen), frozenset(self.absent - self.seen.keys()))


def certainty(facts: Iterable[Fact]) -> How:
    """How sure several facts are together: claimed only if all of them are."""
    claimed = [fact.certainty is Certainty.CLAIMED for fact in facts]
    return How.CLAIMED if claimed and all(claimed) else How.OBSERVED


def derived(facts: Iterable[Fact]) -> How:
    """How sure what follows from facts is: claimed where all of them are."""
    return How.CLAIMED if certainty(facts) is How.CLAIMED else How.DERIVED


def refs(facts: Iterable[Fact]) -> tuple[Ref, ...]:
    """The lines of facts, each once, in order, at most MOST_REFS."""
    return tuple(sorted({Ref(fact.source, fact.line) for fact in facts}))[:MOST_REFS]


def surest_first(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Observed facts before claimed ones, else in their order."""
    given = list(facts)
    yield from (fact for fact in given if fact.certainty is Certainty.OBSERVED)
    yield from (fact for fact in given if fact.certainty is Certainty.CLAIMED)
