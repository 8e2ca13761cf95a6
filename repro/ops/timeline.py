"""Streams, events, asynchronous copies, capture and replay, on an explicit schedule.

The host may run ahead of the device by `host_ahead` pieces of work, drawn anew for each piece from
a seed; 0 executes everything at once, as CUDA_LAUNCH_BLOCKING=1 would. What makes the faults:

- an asynchronous copy reads its host source when it executes, not when it is issued
- a captured launch keeps its pointers and scalars; a replay reads what the pointers hold by then,
  and repeats no decision of the host
- only an event, a stream or a device synchronisation orders the host with the device

This class is the schedule, in every lane. A device with streams, events and graphs of its own
(`Streaming`) is given each piece of work when its turn comes, on its stream, and captures and
replays a graph as one; the order is that of the schedule all the same.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .launch import Device, Launch, streaming
from .tensor import Array, Owners, Tensor


@dataclass(frozen=True, slots=True)
class Schedule:
    """How far the host may run ahead of the device, in pieces of work; `seed` draws the distance.

    exactly: always that far, instead of up to that far.
    """

    host_ahead: int = 0
    seed: int = 0
    exactly: bool = False


@dataclass(eq=False, slots=True)
class Event:
    """A mark on a stream; done once the work before it is. own: the device's event, if any."""

    done: bool = False
    own: Any = None


@dataclass(frozen=True, slots=True)
class Graph:
    """Captured launches, in order. own: the device's graph of them, if it has any."""

    launches: tuple[Launch, ...]
    own: Any = None


@dataclass(slots=True)
class _Work:
    run: Callable[[], None]
    waits_for: Event | None = None


@dataclass(slots=True)
class _Stream:
    queue: deque[_Work] = field(default_factory=deque)


class Timeline:
    """A device whose launches and copies are queued on streams; itself a `Device`.

    `stream` names the one that launches and copies go to. While a graph is captured only launches
    may be asked for: anything else is a RuntimeError, as a device refuses it.
    """

    def __init__(self, device: Device, schedule: Schedule | None = None) -> None:
        self.device = device
        self.schedule = schedule or Schedule()
        self.stream = "main"
        self._random = random.Random(self.schedule.seed)  # noqa: S311 - a schedule, not a secret
        self._streams: dict[str, _Stream] = {}
        self._own = streaming(device)
        self._captured: list[Launch] | None = None

    # --- what a Device offers ------------------------------------------------------------------

    def tensor(
        self,
        name: str,
        values: Array,
        *,
        owners: Owners | None = None,
        behind: Array | None = None,
    ) -> Tensor:
        return self.device.tensor(name, values, owners=owners, behind=behind)

    def launch(self, launch: Launch) -> None:
        """Queue a launch on the current stream, or keep it while a graph is captured."""
        if self._captured is not None:
            self._captured.append(launch)
            return
        self._enqueue(_Work(partial(self.device.launch, launch)))

    def read(self, tensor: Tensor) -> Array:
        """A blocking copy to the host: everything queued so far comes first."""
        self.synchronize()
        return self.device.read(tensor)

    def write(self, tensor: Tensor, values: ArrayLike) -> None:
        """A blocking copy from the host: everything queued so far comes first."""
        self.synchronize()
        self.device.write(tensor, values)

    def allocate(self, name: str, size: int) -> bool:
        return self.device.allocate(name, size)

    # --- streams and events --------------------------------------------------------------------

    @contextmanager
    def on(self, stream: str) -> Iterator[None]:
        """Queue what follows on another stream."""
        before, self.stream = self.stream, stream
        try:
            yield
        finally:
            self.stream = before

    def copy_async(self, target: Tensor, source: Array) -> None:
        """Queue a copy of a host array to a tensor; the array is read when the copy executes.

        ValueError if the sizes differ.
        """
        if source.size != target.size:
            raise ValueError(f"{target!r} has {target.size} elements, the source {source.size}")
        self._enqueue(_Work(partial(self.device.write, target, source)))

    def record(self, event: Event | None = None) -> Event:
        """Mark this point of the current stream, in `event` where others wait for that one."""
        marked = Event() if event is None else event

        def mark() -> None:
            if self._own is not None:
                marked.own = self._own.record(marked.own)
            marked.done = True

        self._enqueue(_Work(mark))
        return marked

    def call(self, function: Callable[[], None]) -> None:
        """Queue a function of the host, which runs in its turn on the stream.

        As cudaLaunchHostFunc does: it may use `Timeline.device`, and must not ask the timeline.
        """

        def run() -> None:
            if self._own is not None:  # what is before it on the stream has ended by then
                self._own.wait_for(None)
            function()

        self._enqueue(_Work(run))

    def wait(self, event: Event) -> None:
        """Let the current stream, not the host, wait for an event."""

        def follow() -> None:
            if self._own is not None:
                self._own.follow(event.own)

        self._enqueue(_Work(follow, waits_for=event))

    def synchronize(self, event: Event | None = None) -> None:
        """Let the host wait: for an event, or for all streams.

        RuntimeError if that never comes: an event nobody records, or streams that wait in a circle.
        """
        self._refuse_in_capture("a synchronisation")
        while not (event.done if event else self._idle()):
            if not self._execute_one():
                raise RuntimeError("the device waits for an event that nothing records")
        if self._own is not None:
            self._own.wait_for(event.own if event else None)

    def _idle(self) -> bool:
        return not any(stream.queue for stream in self._streams.values())

    # --- capture and replay --------------------------------------------------------------------

    @contextmanager
    def capture(self) -> Iterator[list[Graph]]:
        """Keep the launches of the block instead of executing them; the list gets the graph."""
        if self._captured is not None:
            raise RuntimeError("a capture is already running on this device")
        self._captured = []
        graphs: list[Graph] = []
        try:
            yield graphs
            launches = tuple(self._captured)
            own = self._own.capture(launches) if self._own is not None and launches else None
            graphs.append(Graph(launches, own))
        finally:
            self._captured = None

    def replay(
        self,
        graph: Graph,
        number: Callable[[], int],
        step: int | None,
        requests: ArrayLike | None = None,
    ) -> None:
        """Queue the captured launches again, as they were captured.

        number: gives each its number in the trial (`Ops.number`). step and requests (the request
        each row works for now; None: as captured) are labels for checks and reader, no part of the
        graph; ValueError if a launch has another number of rows.
        """
        rows = None if requests is None else np.asarray(requests, np.int32)
        again = []
        for launch in graph.launches:
            labels = launch.requests if rows is None else rows
            if labels is not None and labels.shape != (launch.grid[0],):
                raise ValueError(
                    f"{launch.op}: {launch.grid[0]} rows, but requests for {labels.shape}"
                )
            again.append(replace(launch, index=number(), step=step, requests=labels))
        works: list[Callable[[], None]] = [partial(self.device.launch, one) for one in again]
        if self._own is not None and graph.own is not None:
            # as many pieces of work as elsewhere, so that a seed draws the same schedule
            works = [partial(self._own.replay, graph.own, again), *[_nothing] * (len(again) - 1)]
        for work in works:
            self._enqueue(_Work(work))

    def _refuse_in_capture(self, what: str) -> None:
        if self._captured is not None:
            raise RuntimeError(f"{what} cannot be captured in a graph")

    # --- the schedule --------------------------------------------------------------------------

    def _enqueue(self, work: _Work) -> None:
        self._refuse_in_capture("a copy, an event or a replay")
        self._streams.setdefault(self.stream, _Stream()).queue.append(work)
        ahead = self.schedule.host_ahead
        if ahead and not self.schedule.exactly:
            ahead = self._random.randint(0, ahead)
        while sum(len(s.queue) for s in self._streams.values()) > ahead:
            if not self._execute_one():
                return  # every stream waits for work that the host has still to queue

    def _execute_one(self) -> bool:
        """Execute the head of one stream that is ready, drawn by the seed; False if none is."""
        ready = [
            (name, stream)
            for name, stream in self._streams.items()
            if stream.queue and (not (e := stream.queue[0].waits_for) or e.done)
        ]
        if not ready:
            return False
        name, stream = ready[0] if len(ready) == 1 else self._random.choice(ready)
        if self._own is not None:
            self._own.use(name)
        stream.queue.popleft().run()
        return True


def _nothing() -> None:
    """A piece of work that another one has done already."""
