"""One launch of one op, and what a lane must offer to execute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .tensor import Array, Owners, Tensor

Argument = Tensor | int | float | None


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of one op.

    args: by parameter name, as the kernel's manifest and the reference's signature name them; None
    is a null pointer. grid: blocks in x, y, z; x is the *row* of the op (a token or a request).
    requests: int32[grid x], the request each row works for (EVERYBODY: no request, not checked).
    step: what the scenario calls this moment, for the reader (draft step, engine step).
    """

    index: int
    op: str
    args: Mapping[str, Argument]
    grid: tuple[int, int, int]
    requests: NDArray[np.int32] | None
    step: int | None


class StoppedError(Exception):
    """A lane ends the trial at its first finding, because it was asked to."""


class Device(Protocol):
    """A lane's side of the ops."""

    def tensor(
        self,
        name: str,
        values: Array,
        *,
        owners: Owners | None = None,
        behind: Array | None = None,
    ) -> Tensor:
        """A tensor holding a copy of `values`, contiguous, aligned to 256 bytes."""

    def launch(self, launch: Launch) -> None: ...

    def read(self, tensor: Tensor) -> Array:
        """A host copy, in the tensor's shape; waits for the launches before it."""

    def write(self, tensor: Tensor, values: ArrayLike) -> None:
        """Overwrite the whole tensor from the host."""

    def allocate(self, name: str, size: int) -> bool:
        """Ask for `size` bytes; False where the device does not have them."""


@runtime_checkable
class Streaming(Protocol):
    """What a device with streams, events and graphs of its own offers besides.

    Whatever is asked of it runs on the stream named last by `use`, behind all that was asked before
    on any stream: the order is the schedule's, and the device's own timing decides nothing. An
    event and a graph are what `record` and `capture` gave.
    """

    def use(self, stream: str) -> None:
        """What follows goes to this stream."""

    def record(self, event: Any) -> Any:
        """Mark this point of the stream, in `event` where that is not None; the event."""

    def follow(self, event: Any) -> None:
        """Let the stream, not the host, wait for an event."""

    def wait_for(self, event: Any) -> None:
        """Let the host wait for an event; for everything where it is None."""

    def capture(self, launches: Sequence[Launch]) -> Any:
        """A graph of these launches; none of them runs. UnsupportedError where it captures none."""

    def replay(self, graph: Any, launches: Sequence[Launch]) -> None:
        """Run a captured graph once; launches: what was captured, under its numbers of now."""


def streaming(device: object) -> Streaming | None:
    """The device itself, or the one that it passes everything on to, where that has streams."""
    while device is not None and not isinstance(device, Streaming):
        device = getattr(device, "device", None)
    return device
