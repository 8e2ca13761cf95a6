"""Slots of the tokens of a batch; the plain-Python side of `slot_mapping`.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def slot_mapping(
    query_start: Tensor,
    positions: Tensor,
    block_table: Tensor,
    slots: Tensor,
    num_requests: int,
    num_slots: int,
    table_stride: int,
    block_size: int,
    *,
    rows: int,
) -> None:
    """slots[t] = block_table[row, position // block_size] * block_size + position % block_size.

    query_start int32[requests + 1], positions int64[tokens], block_table int32[requests, columns],
    slots int64[num_slots]. Row num_requests, the last, writes -1 past the last token.
    """
    for row in range(rows):
        first = int(query_start.load(row, row=row))
        if row == num_requests:
            slots.store(np.arange(first, num_slots), -1, row=row)
            continue
        tokens = np.arange(first, int(query_start.load(row + 1, row=row)))
        position = positions.load(tokens, row=row)
        offset = np.fmod(position, block_size)  # C's division, as on the device: to zero
        column = (position - offset) // block_size
        block = block_table.load(row * table_stride + column, row=row).astype(np.int64)
        slots.store(tokens, block * block_size + offset, row=row)
