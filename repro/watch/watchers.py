"""Every watcher of the driver, started before something and stopped a while after it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from .events import Event, Watched
from .incidents import Incident, group
from .kernel_log import KernelLog, Place
from .nvml_events import NvmlEvents

LINGER = 2.0  # seconds after the end: 43 and 45 come when the process is taken down


class Watcher(Protocol):
    """What tells of Xid events."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def events(self) -> list[Event]: ...

    @property
    def watched(self) -> Watched: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen: incidents, and what each source's silence is worth."""

    incidents: Sequence[Incident]
    watched: Sequence[Watched]


class Watchers:
    """NVML and the kernel log together. As a context, it lingers before it stops."""

    def __init__(self, place: Place | None = None, linger: float = LINGER) -> None:
        self._log = KernelLog(place)
        self._watchers: list[Watcher] = [NvmlEvents(), self._log]
        self._linger = linger

    def __enter__(self) -> Watchers:
        for watcher in self._watchers:
            watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None and any(watcher.watched.observable for watcher in self._watchers):
                time.sleep(self._linger)
        finally:  # a second Ctrl-C ends the waiting, not what was seen
            for watcher in self._watchers:
                watcher.stop()

    def lines(self) -> list[str]:
        """The lines of the kernel log that told of an Xid."""
        return self._log.lines()

    def seen(self) -> Seen:
        """What came so far."""
        events = [event for watcher in self._watchers for event in watcher.events()]
        return Seen(group(events), [watcher.watched for watcher in self._watchers])
