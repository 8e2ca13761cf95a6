"""What an address can lie in: a buffer, the shared memory of a block, the local of a thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..ops import Owners
from .dtypes import Array, DType
from .sites import Site

TAG_BITS = 48  # an address is tag << TAG_BITS | where in the storage
MIDDLE = 1 << 46  # where a buffer begins: far from the next tag, however far an overrun goes
LOCAL_TAG, SHARED_TAG = 0x7FFE, 0x7FFF
VARIABLE_TAG = 0x7000  # of the first variable of the module
PARAMETER_TAG = 0x7800  # of the first parameter, for kernels that take its address
MAX_BUFFERS = VARIABLE_TAG - 1
ADDRESS_BITS = 0xFF  # low bits of a buffer's address are those it has in this process


# Told of every access that goes through: the instruction, its records (in the window of its
# width), the lanes (None: all), the values that it stores.
Watch = Callable[[Site, Array, "Array | None", "tuple[Array, ...]"], None]


class Window(NamedTuple):
    """A storage seen as aligned records of one width.

    base: address of record 0. limit: offset of the last record, -1 where there is none. shift: log2
    of the width. records: [count] or, for vectors, [count, elements].
    """

    base: int
    limit: int
    shift: int
    records: Array


@dataclass(slots=True, eq=False)
class Storage:
    """Bytes with exact limits.

    data: uint8, live. base: address of the first byte. size: bytes that may be touched, in each row
    for shared and local memory. starts: for each lane the first byte of its row; None: one row.
    itemsize: bytes of an element, 1 for all but buffers. frozen: constant memory, which no launch
    may change. marks: uint8, 1 for each byte of data that somebody wrote; None: all are. watch: who
    is told of what goes through.
    """

    name: str
    data: Array
    base: int
    size: int
    itemsize: int
    owners: Owners | None = None
    behind: Array | None = None
    origin: Array | None = None
    starts: Array | None = None
    frozen: bool = False
    rows: int = 1
    marks: Array | None = None
    watch: Watch | None = None
    marked: dict[int, Array] = field(default_factory=dict)
    windows: dict[tuple[DType, int], Window] = field(default_factory=dict)

    @property
    def is_buffer(self) -> bool:
        return self.origin is not None

    def window(self, key: tuple[DType, int]) -> Window:
        """This storage as records of key = (dtype, elements a record)."""
        found = self.windows.get(key)
        if found is None:
            dtype, elements = key
            width = dtype.itemsize * elements
            skipped = -self.base % width
            count = max(0, self.data.size - skipped) // width
            records = self.data[skipped : skipped + count * width].view(dtype)
            if elements > 1:
                records = records.reshape(count, elements)
            usable = count if self.starts is not None else max(0, self.size - skipped) // width
            limit = (usable - 1) * width if self.starts is None else self.size - width
            found = Window(self.base + skipped, limit, width.bit_length() - 1, records)
            self.windows[key] = found
        return found


def buffer_storage(
    name: str,
    data: Array,
    tag: int,
    owners: Owners | None,
    behind: Array | None,
    initialised: Array | None = None,
) -> Storage:
    """The storage of a one-dimensional contiguous array. ValueError on any other."""
    if data.ndim != 1 or not data.flags.c_contiguous:
        raise ValueError(f"{name}: a buffer is one-dimensional and contiguous")
    if not data.flags.writeable:
        raise ValueError(f"{name}: a buffer can be written to")
    if behind is not None and (behind.ndim != 1 or behind.dtype != data.dtype):
        raise ValueError(f"{name}: what lies behind is flat and of the buffer's dtype")
    if owners is not None and (owners.unit < 1 or owners.of.size * owners.unit < data.size):
        raise ValueError(
            f"{name}: {owners.of.size} units of {owners.unit} for {data.size} elements"
        )
    if initialised is not None and (
        initialised.dtype != np.bool_
        or initialised.shape != (data.nbytes,)
        or not initialised.flags.c_contiguous
        or not initialised.flags.writeable
    ):
        raise ValueError(f"{name}: one bool that can be written for each of {data.nbytes} bytes")
    marks = None if initialised is None else initialised.view(np.uint8)
    base = (tag << TAG_BITS) + MIDDLE + (address(data) & ADDRESS_BITS)
    raw = data.view(np.uint8)
    stated = None if behind is None else np.ascontiguousarray(behind).view(np.uint8)
    return Storage(
        name, raw, base, raw.size, data.dtype.itemsize, owners, stated, data, marks=marks
    )


def row_storage(
    name: str, tag: int, size: int, rows: int, row: Array, *, marked: bool = False
) -> Storage:
    """Zeroed memory of `size` bytes for each of `rows`; `row`: the row of each lane.

    marked: with marks, of which none is set.
    """
    stride = max(16, -(-size // 16) * 16)
    starts = row * stride if rows > 1 else np.zeros(1, np.int64)
    memory = np.zeros(rows * stride, np.uint8)
    marks = np.zeros(memory.size, np.uint8) if marked else None
    return Storage(name, memory, window_start(tag), size, 1, starts=starts, rows=rows, marks=marks)


def window_start(tag: int) -> int:
    """The generic address of byte 0 of what is no buffer."""
    return (tag << TAG_BITS) + MIDDLE


def address(data: Array) -> int:
    """Where an array lies in this process."""
    return int(data.__array_interface__["data"][0])


def lands_in(origin: Array, offset: int, others: list[Storage]) -> str:
    """What byte `offset` of `origin`, outside of it, lies in: an element of another buffer of the
    same allocation, else unmapped memory.
    """
    target = address(origin) + offset
    for other in others:
        data = other.origin
        if data is None or data is origin or allocation(data) is not allocation(origin):
            continue
        inside = target - address(data)
        if 0 <= inside < data.nbytes:
            return f"{other.name}[{inside // other.itemsize}]"
    return "unmapped memory"


def allocation(data: Array) -> object:
    """The object that owns the memory of an array."""
    owner: object = data
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner
