"""One launch of one op, and what a lane must offer to execute it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

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
