"""Wrong accesses: collected while a launch runs, merged into one record a kind, line and buffer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..ops import EVERYBODY, NOBODY
from ..records import Kind
from .checks import DEFAULT
from .distinct import distinct
from .dtypes import Array
from .geometry import Geometry, Triple
from .ptx import Place
from .races import GlobalRace, Other, Race, RaceKey, Races, Side, other, told
from .storage import Storage, lands_in

READS = frozenset({Kind.OUT_OF_BOUNDS_READ, Kind.FOREIGN_READ})
NULL_REACH = 1 << 30  # bytes around address 0 that count as coming from a null pointer
PIECES = 256  # arrays kept before they are merged
MAX_PRINTED = 1 << 16  # characters of one launch


@dataclass(frozen=True, slots=True)
class WrongAccess:
    """One wrong access of a launch: kind x source line x buffer x request.

    elements: sorted, unique flat elements of the buffer's dtype, only the wrong ones; byte offsets
    for shared and local memory, byte addresses where there is no buffer. bytes_past_end: of the
    first wrong byte past the end, None where none is. width: bytes of one access. block, thread:
    of the first wrong thread in launch order. threads: how many took part. message: of an assertion
    that failed. other: of a race, the other side.
    """

    kind: Kind
    buffer: str | None
    elements: NDArray[np.int64]
    bytes_past_end: int | None
    width: int
    block: Triple
    thread: Triple
    threads: int
    file: str
    line: int
    request: int | None
    lands_in: str
    message: str = ""
    other: Other | None = None


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """What a launch did wrong. instructions: executed, each once for all threads it ran for.

    printed: what its threads printed, in the order in which they did. warnings: races between its
    blocks. checks: those that were on (checks.py), `bounds` among them. invented: special registers
    that were read and whose values say nothing, such as clocks. decided: blocks that were not
    executed, because one look at the kernel told what all of them do. uneven: where threads that
    hold copies of one number stored different ones at once, if `launch` knew that they are copies.
    unmarked: buffers whose marks do not say what was written.
    """

    accesses: tuple[WrongAccess, ...]
    instructions: int
    printed: str = ""
    warnings: tuple[GlobalRace, ...] = ()
    checks: frozenset[str] = frozenset()
    invented: tuple[str, ...] = ()
    decided: int = 0
    uneven: tuple[GlobalRace, ...] = ()
    unmarked: tuple[str, ...] = ()


class StopLaunch(Exception):
    """The first wrong access has been recorded and the launch is to stop there."""


@dataclass(slots=True)
class _Entry:
    storage: Storage | None
    width: int
    geometry: Geometry
    elements: list[Array] = field(default_factory=list)
    threads: list[Array] = field(default_factory=list)
    past: int | None = None
    message: str = ""

    def merge(self) -> None:
        self.elements = [distinct(np.concatenate(self.elements))]
        self.threads = [distinct(np.concatenate(self.threads))]


class Recorder:
    """Collects what goes wrong in one launch. requests: int32[grid x], None: not declared."""

    def __init__(
        self,
        requests: Array | None,
        *,
        stop_at_first: bool,
        checks: frozenset[str] = DEFAULT,
        copies: bool = False,
    ) -> None:
        self.requests = requests
        self.copies = copies
        self.checks = checks
        self.races = Races()  # in shared memory
        self.uneven = Races()  # of them those of threads that hold copies of one number
        self.warnings = Races()  # between blocks
        self.stop_at_first = stop_at_first
        self.printed: list[str] = []
        self.left = MAX_PRINTED
        self.time = 0  # the last reading of a clock
        self.entries: dict[tuple[Kind, Place, str | None, int | None], _Entry] = {}

    def add(
        self,
        kind: Kind,
        place: Place,
        storage: Storage | None,
        offsets: Array,
        lanes: Array,
        width: int,
        geometry: Geometry,
        *,
        span: int | None = None,
    ) -> None:
        """Record accesses of `width` bytes by `lanes`, of which `span` bytes (None: all) at byte
        `offsets` of a storage are wrong.
        """
        for request, chosen in self._by_request(lanes, geometry):
            self._add(
                (kind, place, storage.name if storage else None, request),
                storage,
                offsets[chosen],
                geometry.identities(lanes[chosen]),
                width,
                geometry,
                width if span is None else span,
            )
            if self.stop_at_first:
                raise StopLaunch

    def race(
        self,
        storage: Storage,
        one: Side,
        two: Side,
        elements: Array,
        geometry: Geometry,
        *,
        at_once: bool = False,
    ) -> None:
        """Record a race in shared memory. at_once: of one execution of one instruction."""
        if at_once and self.copies:
            self.uneven.add(storage, one, two, elements, geometry)
            return
        self.races.add(storage, one, two, elements, geometry)
        if self.stop_at_first:
            raise StopLaunch

    def diverged(self, place: Place, lanes: Array, geometry: Geometry) -> None:
        """Record that `lanes` are at a barrier that not all reach who must."""
        nothing = np.zeros(lanes.size, np.int64)
        self.add(Kind.DIVERGENT_BARRIER, place, None, nothing, lanes, 0, geometry)

    def trap(self, place: Place, lanes: Array, geometry: Geometry, message: str = "") -> None:
        """Record that `lanes` executed a trap, or an assertion that failed with `message`."""
        try:
            self.add(Kind.TRAP, place, None, np.zeros(lanes.size, np.int64), lanes, 0, geometry)
        finally:
            for (kind, at, _, _), entry in self.entries.items():
                if (kind, at) == (Kind.TRAP, place):
                    entry.message = entry.message or message

    def print(self, text: str) -> bool:
        """Keep what a thread prints; False when there is no room for more."""
        if self.left <= 0:
            return False
        self.printed.append(text[: self.left])
        self.left -= len(text)
        if self.left <= 0:
            self.printed.append(f"\n[nothing after {MAX_PRINTED} characters is kept]\n")
        return True

    def _by_request(
        self, lanes: Array, geometry: Geometry
    ) -> list[tuple[int | None, Array | slice]]:
        if self.requests is None:
            return [(None, slice(None))]
        columns = geometry.column
        columns = columns[lanes] if columns.size > 1 else np.repeat(columns, lanes.size)
        found = self.requests[columns]
        first = int(found[0])
        if not np.logical_or.reduce(found != first):
            return [(None if first == EVERYBODY else first, slice(None))]
        return [
            (None if request == EVERYBODY else request, (found == request).nonzero()[0])
            for request in distinct(found).tolist()
        ]

    def _add(
        self,
        key: tuple[Kind, Place, str | None, int | None],
        storage: Storage | None,
        offsets: Array,
        threads: Array,
        width: int,
        geometry: Geometry,
        span: int,
    ) -> None:
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = _Entry(storage, width, geometry)
        item, size = (storage.itemsize, storage.size) if storage else (1, None)
        elements = touched(offsets, span, item) if span else offsets[:0]
        outside = key[0] in (
            Kind.OUT_OF_BOUNDS_READ,
            Kind.OUT_OF_BOUNDS_WRITE,
            Kind.SHARED_OUT_OF_BOUNDS,
        )
        if size is not None and outside:
            elements = elements[(elements < 0) | (elements >= size // item)]
            beyond = np.maximum(offsets, size)[offsets + span > size] - size
            if beyond.size:
                least = int(beyond.min())
                entry.past = least if entry.past is None else min(least, entry.past)
        entry.elements.append(elements)  # sorted and unique, as `touched` gives them
        entry.threads.append(threads)
        if len(entry.elements) > PIECES:
            entry.merge()

    def accesses(self, buffers: list[Storage]) -> tuple[WrongAccess, ...]:
        """All records, by line, kind, buffer and request."""
        records = []
        for (kind, place, name, request), entry in self.entries.items():
            entry.merge()
            elements, threads = entry.elements[0], entry.threads[0]
            block, thread = entry.geometry.place(int(threads[0]))
            is_buffer = entry.storage is not None and entry.storage.is_buffer
            records.append(
                WrongAccess(
                    kind,
                    name if is_buffer else None,
                    elements.astype(np.int64),
                    entry.past,
                    entry.width,
                    block,
                    thread,
                    int(threads.size),
                    place.file,
                    place.line,
                    request,
                    _lands_in(kind, entry.storage, elements, buffers),
                    entry.message,
                )
            )
        records += [_raced(key, race, self.requests) for key, race in self.races.found.items()]
        return tuple(sorted(records, key=_order))


def _raced(key: RaceKey, race: Race, requests: Array | None) -> WrongAccess:
    block, thread = race.geometry.place(race.thread)
    second = other(key, race)
    request = None if requests is None else int(requests[block[0]])
    return WrongAccess(
        Kind.SHARED_RACE,
        None,
        race.elements[0].astype(np.int64),
        None,
        race.width,
        block,
        thread,
        int(race.threads[0].size),
        key.place.file,
        key.place.line,
        None if request == EVERYBODY else request,
        f"{key.storage}, {told(second)}",
        other=second,
    )


def _order(access: WrongAccess) -> tuple[str, int, str, str, int, str]:
    request = -1 if access.request is None else access.request
    buffer = access.buffer or ""
    return access.file, access.line, access.kind, buffer, request, access.lands_in


def touched(offsets: Array, width: int, itemsize: int) -> Array:
    """int64: the elements that accesses of `width` bytes at byte `offsets` touch."""
    first = offsets // itemsize
    last = (offsets + (width - 1)) // itemsize
    most = int((last - first).max()) if offsets.size and width else 0
    if not most:
        return distinct(np.minimum(first, last))
    return distinct(np.concatenate([np.minimum(first + j, last) for j in range(most + 1)]))


def _lands_in(kind: Kind, storage: Storage | None, elements: Array, buffers: list[Storage]) -> str:
    if kind in (Kind.TRAP, Kind.DIVERGENT_BARRIER):
        return ""
    first = int(elements[0])
    if storage is None:
        return "null pointer" if -NULL_REACH < first < NULL_REACH else "no tensor"
    origin = storage.origin
    if origin is None:
        inside = 0 <= first < storage.size
        return storage.name if inside else f"outside {storage.name} of {storage.size} bytes"
    if kind in (Kind.FOREIGN_READ, Kind.FOREIGN_WRITE) and storage.owners is not None:
        unit = first // storage.owners.unit
        owner = int(storage.owners.of[unit])
        if owner == NOBODY:
            return f"a free unit of {storage.name}"
        return f"request {owner}'s unit {unit} of {storage.name}"
    offset = first * storage.itemsize
    if 0 <= offset < storage.size:
        return f"{storage.name}[{first}]"
    stated = 0 if storage.behind is None else storage.behind.size
    if kind in READS and 0 <= offset - storage.size < stated:
        return f"stated memory behind {storage.name}"
    return lands_in(origin, offset, buffers)
