"""Rows of a two-dimensional array, read and written as one item each.

Indexed with an array of rows numpy goes element by element, which takes forty times as long.
"""

from __future__ import annotations

import numpy as np

from .dtypes import UNSIGNED, Array, DType

# Only copied, never computed with: bits stay as they are.
_PAIR = np.dtype(np.complex128)


def rows_at(records: Array, at: Array) -> Array:
    """records[at], for records of one or two dimensions; `at` within them, not negative."""
    found: Array = records.take(at, axis=0)
    return found


def put_rows(records: Array, at: Array, values: Array) -> None:
    """records[at] = values, both [rows, elements] of one dtype; `values` may be one row for all.

    Of several values for one row the last one stays.
    """
    item = _item(records.dtype.itemsize * records.shape[1])
    records.view(item)[:, 0][at] = np.ascontiguousarray(values).view(item)[:, 0]


def _item(size: int) -> DType:
    if size in UNSIGNED:
        return UNSIGNED[size]
    return _PAIR if size == _PAIR.itemsize else np.dtype((np.void, size))
