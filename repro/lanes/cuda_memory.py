"""Device memory in which the first byte behind a tensor faults.

Each tensor has a wide range of addresses of its own, in which only its own pages are mapped, its
end flush with the end of the mapping. An access up to REACH bytes behind it faults at full speed,
one before it from the first page of the mapping on, and an address that compute-sanitizer names is
charged to it and to nobody else.

What it costs: a page of the granularity (2 MiB on the devices of today) a tensor at least, and a
few calls of the driver for each. Addresses are given at multiples of ALIGNMENT, so up to 15 bytes
behind a tensor whose size is none are mapped: an access that ends there does not fault.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ops import Array, Tensor
from .cuda_driver import Driver

ALIGNMENT = 16  # bytes: the most that a shipped kernel is compiled for
REACH = 16 << 30  # bytes of unmapped addresses on each side
SHADOW = 256  # bytes: alignment of the host array that stands for a tensor


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor's memory. address: of its first byte; host: of its shadow's. size: bytes of the
    tensor, what lies behind it included."""

    address: int
    host: int
    size: int
    mapped: int
    pages: int
    reserved: int
    width: int
    handle: Any

    @property
    def reach(self) -> tuple[int, int]:
        """First and last address that belong to this tensor alone."""
        return self.reserved, self.reserved + self.width - 1


class Memory:
    """The tensors of a device, found by the host array that stands for each.

    A tensor's `data` is a host array that says its size and type and is never read for values; a
    view of it is a view of the device's memory. The memory goes when nothing holds the array any
    more, at the next time the device has been waited for.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._granularity = driver.granularity()
        self._pieces: dict[int, Piece] = {}
        self._unheld: list[Piece] = []

    def place(
        self, values: Array, behind: Array | None, *, written: bool = True
    ) -> tuple[Array, Piece]:
        """A flat host array that stands for a copy of `values` on the device, and where it is.

        behind: what the scenario states to lie right behind; it is mapped and holds that. written:
        False copies nothing, and the memory has never been written.
        """
        content = np.ascontiguousarray(values).reshape(-1)
        raw = np.empty(content.nbytes + SHADOW, np.uint8)
        start = -raw.ctypes.data % SHADOW
        shadow = raw[start : start + content.nbytes].view(content.dtype)
        stated = content if behind is None else np.concatenate([content, behind.reshape(-1)])
        piece = self._map(shadow, max(1, stated.nbytes))
        if stated.nbytes and written:
            self._driver.to_device(piece.address, stated.ctypes.data, stated.nbytes)
        self._pieces[raw.ctypes.data] = piece
        weakref.finalize(raw, self._let_go, raw.ctypes.data).atexit = False
        return shadow, piece

    def address(self, tensor: Tensor) -> int:
        """Where a tensor, or a view of one, begins on the device. KeyError for a stranger's."""
        owner = tensor.data
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        piece = self._pieces[owner.ctypes.data]
        return piece.address + tensor.data.ctypes.data - piece.host

    def clear(self) -> None:
        """Give back what nobody holds. Only behind a wait for the device."""
        while self._unheld:
            piece = self._unheld.pop()
            self._driver.unmap(piece.mapped, piece.pages, piece.handle, piece.reserved, piece.width)

    def _map(self, shadow: Array, size: int) -> Piece:
        room = -(-size // ALIGNMENT) * ALIGNMENT
        pages = -(-room // self._granularity) * self._granularity
        width = pages + 2 * REACH
        reserved = self._driver.reserve(width)
        mapped = reserved + REACH
        handle = self._driver.map(mapped, pages)
        address = mapped + pages - room
        return Piece(address, shadow.ctypes.data, size, mapped, pages, reserved, width, handle)

    def _let_go(self, raw: int) -> None:
        self._unheld.append(self._pieces.pop(raw))
