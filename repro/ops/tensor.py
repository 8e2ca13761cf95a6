"""Tensors of a device, who owns which part of them, and the checked access of the references.

The reference lane executes the Python reference of an op, which touches memory only through
`Tensor.load` and `Tensor.store`; they record and mask wrong accesses. No other lane uses those two:
bounds are checked twice, by code that shares nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..records import Kind

EVERYBODY = -1  # the null block and other shared units: any request may touch them
NOBODY = -2  # a free unit: an access by any request is foreign

DTYPE_NAMES = {
    "float16": "fp16",
    "float32": "fp32",
    "int32": "int32",
    "int64": "int64",
    "uint16": "uint16",
}

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Owners:
    """Who may touch which unit of a tensor.

    unit: elements in a unit (a block-table row, a KV block...). of: int32[units], the request that
    owns each unit, EVERYBODY or NOBODY; the scenario keeps it up to date while blocks change hands.
    """

    unit: int
    of: NDArray[np.int32]


class Recorder(Protocol):
    """Where `Tensor` reports what a reference did wrong."""

    def wrong(self, kind: Kind, tensor: Tensor, elements: NDArray[np.int64], row: int) -> None: ...

    def request(self, row: int) -> int | None:
        """The request that row `row` of the current launch works for; None: not declared."""


class Tensor:
    """A named array of a device.

    data: the storage, one-dimensional; an element is numbered by its place in it. shape, strides:
    in elements. behind: what lies right behind the storage in memory, where a scenario states it:
    an out-of-bounds read that lands there is a finding and returns it.
    """

    __slots__ = ("behind", "data", "name", "owners", "recorder", "shape", "strides")

    def __init__(
        self,
        name: str,
        data: Array,
        shape: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        owners: Owners | None = None,
        behind: Array | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        if data.ndim != 1 or (behind is not None and behind.dtype != data.dtype):
            raise ValueError(f"{name}: storage and what lies behind it are flat and of one dtype")
        self.name = name
        self.data = data
        self.shape = tuple(shape)
        self.strides = tuple(strides) if strides is not None else contiguous(self.shape)
        self.owners = owners
        self.behind = behind
        self.recorder = recorder

    @property
    def size(self) -> int:
        """Elements of storage."""
        return int(self.data.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    def __repr__(self) -> str:
        name = DTYPE_NAMES.get(self.dtype.name, self.dtype.name)
        return f"{self.name} {name}[{', '.join(map(str, self.shape))}]"

    def load(self, index: ArrayLike, *, row: int) -> Array:
        """Elements at `index` (any shape of int), for row `row` of the launch; 0 where masked."""
        at = np.asarray(index, dtype=np.int64)
        inside = (at >= 0) & (at < self.size)
        if inside.all():
            values = self.data[at]
        else:
            self._report(Kind.OUT_OF_BOUNDS_READ, at[~inside], row)
            values = np.zeros(at.shape, self.dtype)
            values[inside] = self.data[at[inside]]
            if self.behind is not None:
                beyond = at - self.size
                stated = (beyond >= 0) & (beyond < self.behind.size)
                values[stated] = self.behind[beyond[stated]]
        self._check_owner(Kind.FOREIGN_READ, at[inside], row)
        return values

    def store(self, index: ArrayLike, values: ArrayLike, *, row: int) -> None:
        """Store `values` (broadcast) at `index`; out-of-bounds elements are recorded, not done."""
        at = np.asarray(index, dtype=np.int64)
        new = np.broadcast_to(np.asarray(values, dtype=self.dtype), at.shape)
        inside = (at >= 0) & (at < self.size)
        if not inside.all():
            self._report(Kind.OUT_OF_BOUNDS_WRITE, at[~inside], row)
        self._check_owner(Kind.FOREIGN_WRITE, at[inside], row)
        self.data[at[inside]] = new[inside]

    def _check_owner(self, kind: Kind, at: NDArray[np.int64], row: int) -> None:
        if self.owners is None or self.recorder is None or at.size == 0:
            return
        request = self.recorder.request(row)
        if request is None:
            return
        owner = self.owners.of[at // self.owners.unit]
        foreign = (owner != request) & (owner != EVERYBODY)
        if foreign.any():
            self._report(kind, at[foreign], row)

    def _report(self, kind: Kind, at: NDArray[np.int64], row: int) -> None:
        if self.recorder is None:
            raise IndexError(f"{kind} of {self!r} at element {int(at.flat[0])}")
        self.recorder.wrong(kind, self, at.reshape(-1), row)


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides of `shape`, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, int(extent))
    return tuple(reversed(strides))
