"""Xid events put together: the lines of one fault, told by two sources, are one incident. Pure.

A fault is told several times: NVML may give 43 where the kernel log says 31, an SM prints one 13 a
warp, and 43 and 45 follow as the driver takes the channel away. NVML is no superset of the kernel
log (79, 119, 120 and 154 are only printed), nor the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .events import KERNEL_LOG, Event
from .xid import Entry, entry

WINDOW = 2.0  # seconds between two events of one fault
AFTER = 15.0  # seconds in which a consequence follows its fault: a process takes its time to die
STATE, GONE = 154, 79


@dataclass(frozen=True, slots=True)
class Incident:
    """Events of one fault of one GPU, in order of time.

    first: the event that names the fault, never a consequence unless nothing else was seen.
    bus: None where no source told it. pid: of the host. action: what the driver itself asked for
    (154), else what the catalog says of `first`.
    """

    bus: str | None
    first: Event
    events: tuple[Event, ...]
    pid: int | None
    name: str | None

    @property
    def sources(self) -> tuple[str, ...]:
        """Who told of it."""
        return tuple(dict.fromkeys(event.source for event in self.events))

    @property
    def counts(self) -> Mapping[int, int]:
        """Events by code. What two sources told counts once for each."""
        found: dict[int, int] = {}
        for event in self.events:
            found[event.code] = found.get(event.code, 0) + 1
        return found

    @property
    def entry(self) -> Entry | None:
        """The catalog's row of the first code; None for one that it does not have."""
        return entry(self.first.code)

    @property
    def action(self) -> str:
        """What is to be done: the driver's own word before the catalog's."""
        for event in reversed(self.events):
            if event.code == STATE and event.xid and event.xid.body:
                return event.xid.body
        row = self.entry
        return row.action if row else "unknown code"


def group(events: Iterable[Event]) -> list[Incident]:
    """Incidents in order of their first event."""
    open_: list[list[Event]] = []
    for event in sorted(events, key=lambda e: e.at):
        home = next((one for one in reversed(open_) if _belongs(event, one)), None)
        if home is None:
            open_.append([event])
        else:
            home.append(event)
    return [_incident(one) for one in open_]


def consequence(code: int) -> bool:
    """Whether a code follows another fault, or speaks of one."""
    row = entry(code)
    return row is not None and row.kind in ("consequence", "information")


def _belongs(event: Event, incident: list[Event]) -> bool:
    """Whether an event is of the fault that an incident's events are of."""
    buses = {e.bus for e in incident if e.bus is not None}
    if event.bus is not None and buses and event.bus not in buses:
        return False
    pids = {e.xid.pid for e in incident if e.xid and e.xid.pid is not None}
    pid = event.xid.pid if event.xid else None
    if pid is not None and pids and pid not in pids:
        return False  # two processes that fault at once are two faults
    since = event.at - incident[-1].at
    if consequence(event.code):
        return since <= AFTER
    if all(consequence(e.code) for e in incident):
        # the one that tells the cause may come by the slower source
        return since <= WINDOW
    other = {e.code for e in incident if not consequence(e.code)}
    told = {e.source for e in incident}
    return since <= WINDOW and (event.code in other or event.source not in told)


def _incident(events: list[Event]) -> Incident:
    def rank(event: Event) -> tuple[bool, bool, float]:
        return consequence(event.code), event.source != KERNEL_LOG, event.at

    first = min(events, key=rank)
    told = [e.xid for e in (first, *events) if e.xid is not None]
    pid = next((xid.pid for xid in told if xid.pid is not None), None)
    name = next((xid.name for xid in told if xid.name is not None), None)
    bus = next((event.bus for event in events if event.bus is not None), None)
    return Incident(bus, first, tuple(events), pid, name)
