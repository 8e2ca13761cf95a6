"""Next position, length and slot of every request; the plain-Python side of `draft_step`.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor

# What becomes of a position >= limit; kernel.py says which release does what.
AT_LIMIT = {"ignore": 0, "pad": 1, "clamp": 2}


def draft_step(
    positions: Tensor,
    seq_lens: Tensor,
    block_table: Tensor,
    slots: Tensor,
    table_stride: int,
    block_size: int,
    limit: int,
    at_limit: int,
    *,
    rows: int,
) -> None:
    """Advance positions int64[requests] and seq_lens int32[requests] by one, in place.

    slots int64[requests] becomes block_table[row, position // block_size] * block_size +
    position % block_size, or -1 where the request is padded.
    """
    for row in range(rows):
        position = int(positions.load(row, row=row)) + 1
        length = int(seq_lens.load(row, row=row)) + 1
        padded = at_limit == AT_LIMIT["pad"] and position >= limit
        if padded:
            length = 1
        elif at_limit == AT_LIMIT["clamp"]:
            position = min(position, limit - 1)
            length = min(length, limit)
        positions.store(row, position, row=row)
        seq_lens.store(row, length, row=row)
        if padded:
            slots.store(row, -1, row=row)
            continue
        offset = int(np.fmod(position, block_size))  # C's division, as on the device: to zero
        column = (position - offset) // block_size
        block = int(block_table.load(row * table_stride + column, row=row))
        slots.store(row, block * block_size + offset, row=row)
