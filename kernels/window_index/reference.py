"""Slots that a windowed attention reads, per request; the plain-Python side of `window_index`.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def window_index(
    seq_lens: Tensor,
    block_table: Tensor,
    index: Tensor,
    lengths: Tensor,
    table_stride: int,
    index_stride: int,
    block_size: int,
    window: int,
    *,
    rows: int,
) -> None:
    """index[row, i] = slot of position seq_lens[row] - lengths[row] + i, lengths the window's.

    seq_lens int32[requests], block_table int32[requests, columns], index int32[requests, >=
    window], lengths int32[requests] = min(seq_lens, window). A slot past 32 bits wraps.
    """
    for row in range(rows):
        length = int(seq_lens.load(row, row=row))
        count = min(length, window)
        lengths.store(row, count, row=row)
        position = np.arange(length - count, length)
        block = block_table.load(row * table_stride + position // block_size, row=row)
        slot = block.astype(np.int64) * block_size + position % block_size
        at = row * index_stride + np.arange(position.size)
        index.store(at, slot.astype(np.int32), row=row)
