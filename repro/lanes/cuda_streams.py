"""Streams and events of a CUDA device in the order that a schedule gives.

Every stream has its work in order; between streams a device keeps no order but that of events. Here
whatever goes to a stream waits, by an event, for all that went to another stream before. So what a
scenario does on real streams comes out as its schedule drew it, and the device's timing decides
nothing: a copy that comes too late comes too late because its seed says so.
"""

from __future__ import annotations

from .cuda_driver import Driver

DEFAULT = 0  # the stream before any other was named


class Streams:
    """The streams of a device by name. `current`: the handle of the one named last."""

    def __init__(self, driver: Driver) -> None:
        self.current = DEFAULT
        self._driver = driver
        self._handles: dict[str, int] = {}
        self._turns: dict[int, int] = {}  # stream → its event that others follow

    def of(self, name: str) -> int:
        """The handle of a stream, made now where it has none."""
        if name not in self._handles:
            self._handles[name] = self._driver.stream()
        return self._handles[name]

    def use(self, name: str) -> None:
        """Make another stream the current one; it waits for all that was asked before."""
        before, self.current = self.current, self.of(name)
        if before == self.current:
            return
        if before not in self._turns:
            self._turns[before] = self._driver.event()
        self._driver.record(self._turns[before], before)
        self._driver.follow(self.current, self._turns[before])

    def record(self, event: int | None) -> int:
        """Mark this point of the current stream, in `event` where there is one; the event."""
        marked = self._driver.event() if event is None else event
        self._driver.record(marked, self.current)
        return marked

    def follow(self, event: int) -> None:
        """Let the current stream wait for an event."""
        self._driver.follow(self.current, event)
