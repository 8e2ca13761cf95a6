"""Races as a report tells them: two places of the source and what is touched from both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .distinct import distinct
from .dtypes import Array
from .geometry import Geometry, Triple
from .ptx import Place
from .sites import Site
from .storage import Storage

DOES = {"read": "reads", "poll": "polls", "write": "writes", "atomic": "updates"}


@dataclass(frozen=True, slots=True)
class Other:
    """The other side of a race. access: what it does (sites.RACES). block, thread: of one."""

    access: str
    block: Triple
    thread: Triple
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class GlobalRace:
    """Blocks of a launch touch the same elements, one of them writes, and nothing orders them.

    A warning: the result may depend on which block is first, or not. benign: all write the same
    value. elements, block, thread: as in WrongAccess; access: what it does at file:line.
    """

    buffer: str
    elements: NDArray[np.int64]
    benign: bool
    access: str
    block: Triple
    thread: Triple
    file: str
    line: int
    other: Other


class Side(NamedTuple):
    """One side of a race: what was executed, by which threads (as `Geometry.identities`)."""

    site: Site
    threads: Array


class RaceKey(NamedTuple):
    """What races are merged by."""

    storage: str
    place: Place
    access: str
    other: Place
    other_access: str
    benign: bool


@dataclass(slots=True)
class Race:
    """Races of two instructions, merged. thread, partner: of the least thread of the first side."""

    storage: Storage
    width: int
    geometry: Geometry
    thread: int
    partner: int
    elements: list[Array] = field(default_factory=list)
    threads: list[Array] = field(default_factory=list)

    def add(self, elements: Array, first: Array, second: Array) -> None:
        """More of them: `first[i]` and `second[i]` touch the same."""
        least = int(np.argmin(first))
        if first[least] < self.thread or not self.threads:
            self.thread, self.partner = int(first[least]), int(second[least])
        self.elements = [distinct(np.concatenate([*self.elements, elements]))]
        self.threads = [distinct(np.concatenate([*self.threads, first]))]


class Races:
    """The races of a launch, the side that writes first; of two that write, the earlier line."""

    def __init__(self) -> None:
        self.found: dict[RaceKey, Race] = {}

    def add(
        self,
        storage: Storage,
        one: Side,
        two: Side,
        elements: Array,
        geometry: Geometry,
        *,
        benign: bool = False,
    ) -> None:
        """Accesses `one` and earlier ones `two`, one to one, to `elements`."""
        first, second = sorted((one, two), key=_rank)
        key = RaceKey(
            storage.name,
            first.site.place,
            first.site.manner,
            second.site.place,
            second.site.manner,
            benign,
        )
        race = self.found.get(key)
        if race is None:
            race = self.found[key] = Race(storage, first.site.width, geometry, 0, 0)
        race.add(elements, first.threads, second.threads)
        if first.site.place == second.site.place and first.site.manner == second.site.manner:
            race.add(elements, second.threads, first.threads)

    def warnings(self) -> tuple[GlobalRace, ...]:
        """All of them as warnings, by line."""
        return tuple(
            GlobalRace(
                key.storage,
                race.elements[0].astype(np.int64),
                key.benign,
                key.access,
                *race.geometry.place(race.thread),
                key.place.file,
                key.place.line,
                other(key, race),
            )
            for key, race in sorted(self.found.items(), key=lambda item: order(item[0]))
        )


def order(key: RaceKey) -> tuple[str, int, str, int, str, str, str, bool]:
    """By line, the other line, what is done and to what."""
    place, second = key.place, key.other
    return (
        place.file,
        place.line,
        second.file,
        second.line,
        key.access,
        key.other_access,
        key.storage,
        key.benign,
    )


def other(key: RaceKey, race: Race) -> Other:
    """The second side."""
    block, thread = race.geometry.place(race.partner)
    return Other(key.other_access, block, thread, key.other.file, key.other.line)


def told(side: Other, *, block: bool = False) -> str:
    """The second side in words."""
    whose = f"block {side.block}, thread {side.thread}" if block else f"thread {side.thread}"
    return f"which {whose} {DOES[side.access]} at {side.file}:{side.line}, unordered"


def _rank(side: Side) -> tuple[int, str, int, str]:
    place = side.site.place
    # Of a plain and an atomic write the plain one is what is wrong.
    order = ("write", "atomic", "read", "poll").index(side.site.manner)
    return order, place.file, place.line, side.site.manner
