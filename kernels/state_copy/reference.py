"""Copy state blocks at block borders; the plain-Python side of `state_copy`.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def state_copy(
    state: Tensor,
    block_table: Tensor,
    idx_mapping: Tensor,
    source_column: Tensor,
    target_column: Tensor,
    size: int,
    state_stride: int,
    table_stride: int,
    *,
    rows: int,
) -> None:
    """state[block_table[r, target_column[row]]] = state[block_table[r, source_column[row]]].

    r = idx_mapping[row]. state fp32[blocks, ...] with `size` elements a block, block_table
    int32[table rows, columns], the rest int32[batch]. A negative r or column, equal columns or a
    null block (0) on either side: nothing.
    """
    element = np.arange(size)
    for row in range(rows):
        request = int(idx_mapping.load(row, row=row))
        if request < 0:
            continue
        source = int(source_column.load(row, row=row))
        target = int(target_column.load(row, row=row))
        if source < 0 or target < 0 or source == target:
            continue
        source_block = int(block_table.load(request * table_stride + source, row=row))
        target_block = int(block_table.load(request * table_stride + target, row=row))
        if source_block == 0 or target_block == 0:
            continue
        values = state.load(source_block * state_stride + element, row=row)
        state.store(target_block * state_stride + element, values, row=row)
