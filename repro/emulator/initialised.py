"""Which bytes somebody wrote: looked at by loads, set by stores."""

from __future__ import annotations

import numpy as np

from .dtypes import UNSIGNED, Array
from .rows import put_rows, rows_at
from .sites import Site
from .storage import Storage

# What a record of 1, 2, 4 and 8 written bytes is.
WRITTEN = {n: int.from_bytes(bytes([1]) * n, "little") for n in (1, 2, 4, 8)}


def marks(storage: Storage, width: int) -> Array:
    """The marks of a storage that has some, as records of `width` bytes: [count, words]."""
    found = storage.marked.get(width)
    if found is None:
        assert storage.marks is not None  # noqa: S101
        skipped = -storage.base % width
        count = max(0, storage.data.size - skipped) // width
        records = storage.marks[skipped : skipped + count * width]
        found = records.view(UNSIGNED[min(8, width)]).reshape(count, -1)
        if width <= 8:
            found = found[:, 0]
        storage.marked[width] = found
    return found


def complete(storage: Storage, width: int, at: Array) -> bool:
    """Whether all bytes of the records `at` were written."""
    found = rows_at(marks(storage, width), at)
    # a mark is 0 or 1, so that a byte nobody wrote clears its bit in what all have in common
    return int(np.bitwise_and.reduce(found, axis=None)) == WRITTEN[min(8, width)]


def missing(storage: Storage, width: int, at: Array) -> tuple[Array, Array]:
    """Bytes nobody wrote: their offsets in the data, and the index into `at` of each."""
    assert storage.marks is not None  # noqa: S101
    first = at * width + -storage.base % width
    offsets = first[:, None] + np.arange(width)
    wrong = storage.marks[offsets] == 0
    return offsets[wrong], np.broadcast_to(np.arange(at.size)[:, None], wrong.shape)[wrong]


def mark(storage: Storage, site: Site, at: Array) -> None:
    """Note that the records `at` are written."""
    records = marks(storage, site.width)
    if records.ndim == 1:
        records[at] = WRITTEN[min(8, site.width)]
    else:
        put_rows(records, at, np.full((1, records.shape[1]), WRITTEN[8], records.dtype))


def carry(storage: Storage, width: int, at: Array, source: Array | None) -> None:
    """Give the records `at` the marks of what is copied there: uint8[records, width], None: set."""
    records = marks(storage, width)
    if source is None:
        records[at] = WRITTEN[min(8, width)]
        return
    words = np.ascontiguousarray(source).view(UNSIGNED[min(8, width)])
    records[at] = words if width > 8 else words[:, 0]
