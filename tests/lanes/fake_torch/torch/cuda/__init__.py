"""torch.cuda over the driver of this process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .graphs import CUDAGraph as CUDAGraph
from .graphs import graph as graph
from .streams import ExternalStream as ExternalStream
from .streams import Stream as Stream

_default = Stream(0)
_current = [_default]


def driver(call: str, *arguments: Any) -> None:
    """One call of the driver. RuntimeError, as torch says it, where it fails."""
    code = getattr(ctypes.CDLL("libcuda.so.1"), call)(*arguments)
    if code:
        raise RuntimeError(f"CUDA error {code} from {call}")


def is_available() -> bool:
    return True


def set_device(device: int) -> None:
    if device:
        raise RuntimeError("invalid device ordinal")


def current_device() -> int:
    return 0


def get_device_capability(device: int = 0) -> tuple[int, int]:
    return 9, 0


def default_stream(device: int = 0) -> Stream:
    return _default


def current_stream(device: int = 0) -> Stream:
    return _current[-1]


def synchronize() -> None:
    driver("cuCtxSynchronize")


@contextmanager
def stream(stream: Stream) -> Iterator[None]:
    _current.append(stream)
    try:
        yield
    finally:
        _current.pop()
