"""Capture and replay, by the driver's calls that torch's end in."""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Any


class CUDAGraph:
    """A graph, once it was captured."""

    def __init__(self) -> None:
        self.ready = ctypes.c_void_p()

    def replay(self) -> None:
        from . import current_stream, driver

        driver("cuGraphLaunch", self.ready, ctypes.c_void_p(current_stream().cuda_stream))


class graph:
    """Waits for the device and captures what is put on `stream`, which is current within."""

    def __init__(self, cuda_graph: CUDAGraph, stream: Any) -> None:
        from . import stream as current

        self.cuda_graph = cuda_graph
        self.handle = ctypes.c_void_p(stream.cuda_stream)
        self.current = current(stream)

    def __enter__(self) -> None:
        from . import driver, synchronize

        synchronize()
        self.current.__enter__()
        driver("cuStreamBeginCapture_v2", self.handle, 0)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        from . import driver

        captured = ctypes.c_void_p()
        driver("cuStreamEndCapture", self.handle, ctypes.byref(captured))
        ready = ctypes.byref(self.cuda_graph.ready)
        driver("cuGraphInstantiateWithFlags", ready, captured, ctypes.c_ulonglong(0))
        self.current.__exit__(kind, error, trace)
