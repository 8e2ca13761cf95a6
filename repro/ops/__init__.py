"""What a scenario may call. It does not know which lane runs it; a lane is a `Device`."""

from .decode import DecodeOps
from .launch import Argument, Device, Launch, StoppedError, Streaming
from .metadata import MetadataOps
from .state import StateOps
from .tensor import (
    DTYPE_NAMES,
    EVERYBODY,
    NOBODY,
    Array,
    Owners,
    Recorder,
    Tensor,
    contiguous,
)
from .timeline import Event, Graph, Schedule, Timeline

__all__ = [
    "DTYPE_NAMES",
    "EVERYBODY",
    "NOBODY",
    "Argument",
    "Array",
    "Device",
    "Event",
    "Graph",
    "Launch",
    "Ops",
    "Owners",
    "Recorder",
    "Schedule",
    "StoppedError",
    "Streaming",
    "Tensor",
    "Timeline",
    "contiguous",
]


class Ops(DecodeOps, MetadataOps, StateOps):
    """Every op, on one device. `step` labels the launches that follow, for the reader."""
