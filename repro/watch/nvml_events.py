"""Xid events by NVML: registered before anything is started, read until after it has ended.

Events before registration are not kept (nvml.h). An event has a device and a number: no process, no
address, no text. A GPU that is lost makes the wait fail, and that is evidence too.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from .events import NVML, Event, Watched, pci
from .incidents import GONE
from .nvml import text

POLL = 100  # milliseconds of one wait
LAST_EVENTS = 1_000  # taken after the end, of those that came before it
NO_INSTANCE = 0xFFFFFFFF


class NvmlEvents:
    """A thread that collects Xid events of every GPU that can tell them."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._watched = Watched(NVML, False, "was not started")
        self._set: Any = None
        self._failed: list[str] = []

    def start(self) -> None:
        """Register every GPU. After this, what happens is seen. Never raises."""
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            self._watched = Watched(NVML, False, f"NVML: {error}", "specrepro doctor")
            return
        try:
            count = pynvml.nvmlDeviceGetCount()
            self._set = pynvml.nvmlEventSetCreate()
        except pynvml.NVMLError as error:
            self._watched = Watched(NVML, False, f"NVML cannot make an event set: {error}")
            pynvml.nvmlShutdown()
            return
        registered = sum(self._register(index) for index in range(count))
        if not registered:
            why = "; ".join(self._failed) or "the driver shows no GPU"
            self._watched = Watched(NVML, False, f"no GPU tells of Xid events: {why}")
            self._close()
            return
        self._watched = Watched(NVML, not self._failed, "; ".join(self._failed))
        self._thread = threading.Thread(target=self._collect, name="nvml-events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; events are kept."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)
            if self._thread.is_alive():  # a driver that is ill may never answer
                self._watched = Watched(NVML, False, "NVML did not answer at the end")

    def events(self) -> list[Event]:
        """What came so far, in order."""
        with self._lock:
            return list(self._events)

    @property
    def watched(self) -> Watched:
        """Whether it could see."""
        return self._watched

    def _register(self, index: int) -> bool:
        import pynvml

        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            wanted = pynvml.nvmlEventTypeXidCriticalError
            if not pynvml.nvmlDeviceGetSupportedEventTypes(handle) & wanted:
                self._failed.append(f"GPU {index} does not support Xid events")
                return False
            pynvml.nvmlDeviceRegisterEvents(handle, wanted, self._set)
        except pynvml.NVMLError as error:
            self._failed.append(f"GPU {index}: {error}")
            return False
        return True

    def _collect(self) -> None:
        import pynvml

        left = LAST_EVENTS
        while left:
            last = self._stop.is_set()
            left -= last
            try:
                data = pynvml.nvmlEventSetWait_v2(self._set, 1 if last else POLL)
            except pynvml.NVMLError_Timeout:
                if last:  # nothing is left that came before the end
                    break
                continue
            except pynvml.NVMLError_GpuIsLost:
                self._add(Event(NVML, time.time(), GONE))
                self._watched = Watched(NVML, False, "a GPU was lost; NVML tells nothing more")
                break
            except pynvml.NVMLError as error:
                self._watched = Watched(NVML, False, f"NVML stopped telling: {error}")
                break
            if data.eventType == pynvml.nvmlEventTypeXidCriticalError:
                self._add(_event(data))
        self._close()

    def _add(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)

    def _close(self) -> None:
        import pynvml

        try:
            if self._set is not None:
                pynvml.nvmlEventSetFree(self._set)
            pynvml.nvmlShutdown()
        except pynvml.NVMLError as error:
            self._failed.append(f"NVML did not close: {error}")


def _event(data: Any) -> Event:
    import pynvml

    try:
        bus = pci(text(pynvml.nvmlDeviceGetPciInfo_v3(data.device).busId))
    except pynvml.NVMLError:
        bus = None  # the device may be gone by now; the number is still worth telling
    instance = (int(data.gpuInstanceId), int(data.computeInstanceId))
    known = instance if instance[0] != NO_INSTANCE else None
    return Event(NVML, time.time(), int(data.eventData), bus, None, known)
