"""Device memory for tensors, placed so that an overrun is a fault, or lands where it is known to.

*unmapped*: each tensor has a wide range of addresses of its own, in which only its own pages are
mapped, its end flush with the end of the mapping. An access up to REACH bytes behind it faults at
full speed, one before it from the first page of the mapping on, and an address that
compute-sanitizer names is charged to it and to nobody else. It costs a page of the granularity
(2 MiB on the devices of today) a tensor at least, and a few calls of the driver for each; pages are
given back when nothing holds the tensor. Addresses are multiples of ALIGNMENT, so up to 15 bytes
behind a tensor whose size is none are mapped: an access that ends there does not fault.

*neighbour*: all tensors lie in one arena in the order in which they were made, each at the next
multiple of BLOCK, as blocks of torch's caching allocator lie in a segment (kMinBlockSize in
c10/core/AllocatorConfig.h of torch 2.13.0). An overrun lands in the next tensor, or in the gap of
less than BLOCK bytes before it, and does not fault; only behind the last page of the arena nothing
is mapped. It costs the tensors' sizes and nothing is given back before the process ends: memory of
a tensor that is gone is not handed to another, which would make what an overrun hits a question of
when Python collects.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..ops import Array, Tensor
from .cuda_driver import Driver

ALIGNMENT = 16  # bytes: the most that a shipped kernel is compiled for
REACH = 16 << 30  # bytes of unmapped addresses on each side
SHADOW = 256  # bytes: alignment of the host array that stands for a tensor
BLOCK = 512  # bytes: what addresses in the arena are multiples of
NEIGHBOUR = "neighbour"


@dataclass(frozen=True, slots=True)
class Piece:
    """Memory of one tensor. address: of its first byte. reach: first and last address that belong
    to it alone, mapped or not. pages: what is given back with it, if anything is."""

    address: int
    reach: tuple[int, int]
    pages: Pages | None = None


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages mapped in a reserved range. `address` and `size` are those of the pages."""

    address: int
    size: int
    reserved: int
    width: int
    handle: Any


class Places(Protocol):
    """Where tensors are put."""

    def piece(self, size: int) -> Piece:
        """Memory for `size` bytes."""


class Apart:
    """Each tensor in a range of its own, its end at the end of what is mapped."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._granularity = driver.granularity()

    def piece(self, size: int) -> Piece:
        room = -(-size // ALIGNMENT) * ALIGNMENT
        pages = -(-room // self._granularity) * self._granularity
        width = pages + 2 * REACH
        reserved = self._driver.reserve(width)
        address = reserved + REACH
        handle = self._driver.map(address, pages)
        return Piece(
            address + pages - room,
            (reserved, reserved + width - 1),
            Pages(address, pages, reserved, width, handle),
        )


class Arena:
    """One range for all tensors, in the order in which they are made."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._granularity = driver.granularity()
        self._next = self._mapped = driver.reserve(2 * REACH) + REACH
        self._handles: list[Any] = []  # of pages that stay mapped

    def piece(self, size: int) -> Piece:
        address, self._next = self._next, self._next + -(-size // BLOCK) * BLOCK
        missing = self._next - self._mapped
        if missing > 0:
            pages = -(-missing // self._granularity) * self._granularity
            self._handles.append(self._driver.map(self._mapped, pages))
            self._mapped += pages
        return Piece(address, (address, self._next - 1))


@dataclass(frozen=True, slots=True)
class _Placed:
    host: int
    piece: Piece


class Memory:
    """The tensors of a device, found by the host array that stands for each.

    A tensor's `data` is a host array that says its size and type and is never read for values; a
    view of it is a view of the device's memory. The memory goes when nothing holds the array any
    more, at the next time the device has been waited for. placement: NEIGHBOUR, or anything else
    for a range of its own for each.
    """

    def __init__(self, driver: Driver, placement: str = "") -> None:
        self._driver = driver
        self._places: Places = Arena(driver) if placement == NEIGHBOUR else Apart(driver)
        self._placed: dict[int, _Placed] = {}
        self._unheld: list[Pages] = []
        self._sent: list[Array] = []  # host arrays of copies that were not waited for

    def place(
        self, values: Array, behind: Array | None, *, stream: int = 0, written: bool = True
    ) -> tuple[Array, Piece]:
        """A flat host array that stands for a copy of `values` on the device, and where it is.

        behind: what the scenario states to lie right behind; it is mapped and holds that. stream:
        where it is copied. written: False copies nothing, and the memory has never been written.
        """
        content = np.ascontiguousarray(values).reshape(-1)
        raw = np.empty(content.nbytes + SHADOW, np.uint8)
        start = -raw.ctypes.data % SHADOW
        shadow = raw[start : start + content.nbytes].view(content.dtype)
        stated = content if behind is None else np.concatenate([content, behind.reshape(-1)])
        piece = self._places.piece(max(1, stated.nbytes))
        self._placed[raw.ctypes.data] = _Placed(shadow.ctypes.data, piece)
        weakref.finalize(raw, self._let_go, raw.ctypes.data).atexit = False
        if written:
            self.send(piece.address, stated, stream)
        return shadow, piece

    def send(self, address: int, values: Array, stream: int) -> None:
        """Copy `values`, as they are now, on a stream."""
        if values.nbytes:
            kept = np.array(values, order="C")
            self._sent.append(kept)
            self._driver.to_device(address, kept.ctypes.data, kept.nbytes, stream)

    def address(self, tensor: Tensor) -> int:
        """Where a tensor, or a view of one, begins on the device. KeyError for a stranger's."""
        owner = tensor.data
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        placed = self._placed[owner.ctypes.data]
        return placed.piece.address + tensor.data.ctypes.data - placed.host

    def clear(self) -> None:
        """Give back what nobody holds. Only behind a wait for the device."""
        self._sent.clear()
        while self._unheld:
            one = self._unheld.pop()
            self._driver.unmap(one.address, one.size, one.handle, one.reserved, one.width)

    def _let_go(self, raw: int) -> None:
        pages = self._placed.pop(raw).piece.pages
        if pages is not None:
            self._unheld.append(pages)
