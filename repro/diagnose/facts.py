"""The facts that are read from logs, and the reading that holds them. Frozen, stdlib only.

`repro/diagnose/vocabulary.py` lists every kind of fact with its values; rules are written against
it. A fact never says more than its line: what follows from several facts is the rules' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# What a value of a fact can be. None: the line had no such field.
Value = bool | int | float | str | tuple[bool | int | float | str, ...] | None

# Longest text of a fact, in characters; longer ones end in "…".
TEXT_LENGTH = 300


class Certainty(StrEnum):
    """How far a fact may be trusted."""

    OBSERVED = "observed"  # a line that a program wrote
    CLAIMED = "claimed"  # prose of a person: a report, a comment, a quoted catalog


class Clock(StrEnum):
    """Which clock a time was read from. Times of different clocks cannot be ordered."""

    WALL = "wall"  # date and time of day; `seconds` counts from 1 January, the year may be unknown
    DAY = "day"  # time of day only; `seconds` counts from midnight
    BOOT = "boot"  # seconds since the machine started (kernel log)


@dataclass(frozen=True, slots=True)
class Time:
    """A time as its line gave it.

    `seconds` of a wall clock count in a leap year, so that times with and without a year compare;
    None where the line has no time of its own that could be read. `zone` is the offset as written
    ("Z", "+02:00") or None: two sources without a zone may still be apart by one.
    """

    text: str
    clock: Clock
    seconds: float
    year: int | None = None
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing a line says.

    kind: a name of the vocabulary; values: its fields, by name.
    source: index into `Reading.sources`; line: from 1, of the file that the source was found in.
    rank: of the process that wrote the line, as its prefix gives it ("TP1", "DP0_TP3", "rank3");
    process: kind of process ("worker", "engine_core", "api_server", "scheduler", "kernel", …);
    pid: as the prefix gives it. session: how many engine starts the source held before this line.
    text: the line without its prefixes, printable, at most TEXT_LENGTH characters.
    count: how many lines of this process said the same; `last_line` is the last of them.
    """

    kind: str
    values: Mapping[str, Value]
    source: int
    line: int
    certainty: Certainty = Certainty.OBSERVED
    rank: str | None = None
    process: str | None = None
    pid: int | None = None
    time: Time | None = None
    session: int = 0
    text: str = ""
    count: int = 1
    last_line: int = 0

    def get(self, name: str) -> Value:
        """A value by its name; None where the line did not have it."""
        return self.values.get(name)


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of lines with a clock and an author of its own.

    name: path as it was given, printable; with "#2" for the second block of a page of text.
    part: "file" (a whole log), "block" (fenced or quoted in a page), "prose" (the page around).
    carrier: how lines were wrapped ("docker", "journald", "kubernetes", "ray", "plain", …).
    author: who wrote the block, where the page says so. lines: how many were read.
    complete: False where reading ended early; `cut` says why (None: read to its end).
    """

    name: str
    part: str
    carrier: str = "plain"
    first_line: int = 1
    lines: int = 0
    bytes: int = 0
    author: str | None = None
    complete: bool = True
    cut: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """Failure facts of one engine session in one source; indexes into `Reading.facts`, in order.

    A kernel log's failures are incidents of its own; which belongs to which is for the timeline.
    """

    source: int
    session: int
    first_line: int
    last_line: int
    facts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unread:
    """What could not be read: how many, where first, and what kind of thing it was."""

    source: int
    what: str
    count: int
    first_line: int


@dataclass(frozen=True, slots=True)
class Reading:
    """All that was read. `facts` are in order of source and line.

    `left_out` counts facts by kind that were not kept because their kind had very many; the first
    and the last of each are always there. `hints` say what would make an unread part readable.
    """

    sources: tuple[Source, ...]
    facts: tuple[Fact, ...]
    incidents: tuple[Incident, ...] = ()
    unread: tuple[Unread, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    hints: tuple[str, ...] = ()

    def of(self, kind: str) -> list[Fact]:
        """The facts of one kind, in order."""
        return [fact for fact in self.facts if fact.kind == kind]
