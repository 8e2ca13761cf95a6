"""Scatter keys and values to the paged cache by slot; the plain-Python side of `kv_write`.

Semantics, origin, row rule and what is not checked: see kernel.cu beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def kv_write(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slots: Tensor,
    width: int,
    key_stride: int,
    value_stride: int,
    cache_stride: int,
    *,
    rows: int,
) -> None:
    """key_cache[slots[row]] = key[row] and the same for value; a negative slot is skipped.

    key, value, key_cache, value_cache of one 16-bit type, slots int64[tokens]. Where two tokens
    have one slot, the last row wins here and nobody knows which on a device.
    """
    words = np.arange(width)
    for row in range(rows):
        slot = int(slots.load(row, row=row))
        if slot < 0:
            continue
        target = slot * cache_stride + words
        key_cache.store(target, key.load(row * key_stride + words, row=row), row=row)
        value_cache.store(target, value.load(row * value_stride + words, row=row), row=row)
