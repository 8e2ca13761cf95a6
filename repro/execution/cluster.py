"""A Ray cluster as a place for tasks: Ray schedules and carries, and decides nothing else.

A task is a remote generator without retries of Ray's own: it says first where it runs, then what
came of it. What Ray calls an error of system is INFRA, and policy decides.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import LaneError
from .digest import code_digest
from .laying_out import job_text
from .nodes import SHORT, Node, eligible, nothing_fits
from .parcel import LIMIT, packed_from, unpack
from .play import Told
from .ray_session import Session, session
from .task import Attempt, Ended, Fate, Moment, Outcome, Place

SILENCE = 1.0  # seconds that `wait` waits
LOOK = 2.0  # seconds between two looks at which nodes there are
FETCH = 120.0  # seconds that a result may take from its node


@dataclass(slots=True)
class Flight:
    """An attempt that Ray has. nodes: that may take it; its place is known once it has begun."""

    attempt: Attempt
    nodes: frozenset[str]
    told: Told
    place: Place | None = None


@dataclass(slots=True)
class RayCluster:
    """A `Where`. play: a name for what is kept on the nodes meanwhile."""

    session: Session
    told: Told
    play: str = field(default_factory=lambda: os.urandom(6).hex())
    nodes: dict[str, Node] = field(default_factory=dict)
    avoided: dict[str, str] = field(default_factory=dict)
    _flights: dict[Any, Flight] = field(default_factory=dict)
    _nowhere: list[Outcome] = field(default_factory=list)
    _holding: list[Any] = field(default_factory=list)  # declined, and still on its GPUs
    _looked: float = 0.0

    def room(self) -> bool:
        cpus = sum(node.cpus for node in self.nodes.values() if not node.refused)
        return len(self._flights) < 2 * cpus + 2

    def start(self, attempt: Attempt, told: Told) -> None:
        task = attempt.task
        able, wanted = eligible(self.nodes.values(), attempt, self.avoided)
        if not able:
            why = nothing_fits(self.nodes.values(), task.needs, self.avoided)
            self._nowhere.append(Outcome(attempt, Fate.NOWHERE, reason=why))
            return
        parcel = {
            "play": self.play,
            "digest": code_digest(),
            "entry": task.entry,
            "job": job_text(task.job),
            "files": {name: path.read_bytes() for name, path in task.files.items()},
            "timeout": task.timeout,
            "needs": asdict(task.needs),
            "avoid": sorted(self.avoided),
            "limit": LIMIT,
        }
        others = frozenset(self.nodes) - wanted
        flight = self.session.submit(parcel, task.needs.cpus, task.needs.gpus, wanted, others)
        self._flights[flight] = Flight(attempt, wanted, told)

    def wait(self) -> Sequence[Outcome]:
        outcomes, self._nowhere = self._nowhere, []
        if time.monotonic() - self._looked >= LOOK:
            self.look()
        if outcomes or not self._flights:
            return outcomes
        for ready in self.session.ready(list(self._flights), SILENCE):
            outcome = self._heard(ready)
            if outcome is not None:
                del self._flights[ready]
                outcomes.append(outcome)
        return outcomes

    def avoid(self, key: str, reason: str) -> None:
        self.avoided[key] = reason

    def stop(self) -> None:
        for flight in (*self._flights, *self._holding):
            self.session.cancel(flight)
        self._flights.clear()
        self._holding.clear()

    def look(self) -> None:
        """Take notice of nodes that came or went. ClusterError where the cluster is gone."""
        alive = self.session.nodes(self.nodes)
        for name, node in self.nodes.items():
            if name not in alive:
                self.told(Moment("node", detail=f"node {node.short} ({node.said}) is gone"))
        for name, node in alive.items():
            if name not in self.nodes:
                said = f" is not used: {node.refused}" if node.refused else ""
                self.told(Moment("node", detail=f"node {node.short} ({node.said}){said}"))
        self.nodes = alive
        self._looked = time.monotonic()
        for flight, of in list(self._flights.items()):
            if of.place is None and not of.nodes & alive.keys():  # nobody is left to take it
                self.session.cancel(flight)
                del self._flights[flight]
                self.start(of.attempt, of.told)

    def _heard(self, ready: Any) -> Outcome | None:
        """What a flight says now; None where it has only begun."""
        flight = self._flights[ready]
        try:
            said = self.session.next(ready, FETCH)
        except LaneError as error:
            return Outcome(flight.attempt, Fate.INFRA, flight.place, str(error))
        if "place" in said:
            flight.place = self._place(said)
            flight.told(Moment("started", flight.attempt.task, flight.place))
            return None
        if "declined" in said:
            self._holding.append(ready)
            place = Place(str(said["node"])[:SHORT])
            return Outcome(flight.attempt, Fate.REFUSED, place, str(said["declined"]))
        return self._brought(flight, said)

    def _place(self, said: dict[str, Any]) -> Place:
        node = self.nodes.get(str(said["node"]))
        there = said["place"]
        kind = there["gpu_type"] or ", ".join(node.kinds if node and there["gpus"] else ()) or None
        return Place(
            str(said["node"])[:SHORT],
            tuple(str(gpu) for gpu in there["gpus"]),
            kind,
            there["driver"],
            str(there["machine"]),
            int(there["pid"]),
            node.said if node else "",
        )

    def _brought(self, flight: Flight, said: dict[str, Any]) -> Outcome:
        attempt, place = flight.attempt, flight.place
        try:
            ended, packed = Ended(**said["ended"]), packed_from(said)
            if not ended.infra or packed.files:
                unpack(packed, attempt.task.directory)
        except (LaneError, KeyError, TypeError) as error:
            return Outcome(attempt, Fate.INFRA, place, f"its result was cut: {error}")
        left = ""
        if packed.left and place:
            names = ", ".join(f"{name} ({size:,} bytes)" for name, size in packed.left.items())
            left = f"{names}: node {place.node}, {said['kept']}"
        return Outcome(attempt, Fate.WHOLE, place, ended=ended, left=left)


@contextmanager
def cluster(address: str, told: Told = lambda moment: None) -> Iterator[RayCluster]:
    """A place on the cluster at `address` (`HOST:PORT`, `auto`, or `local` for one that is started
    for this alone).

    ClusterError where it cannot be had, or none of its nodes can be used.
    """
    with session(address) as opened:
        place = RayCluster(opened, told)
        place.look()
        usable = [node for node in place.nodes.values() if not node.refused]
        if not usable:
            said = "; ".join(f"{n.short} ({n.said}): {n.refused}" for n in place.nodes.values())
            raise opened.error(f"no node of the cluster can be used: {said}")
        try:
            yield place
        finally:
            place.stop()
            opened.clear(place.play)
