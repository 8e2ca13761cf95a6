"""Block tables from request order to batch order; the plain-Python side of `gather_block_tables`.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def gather_block_tables(
    idx_mapping: Tensor,
    source: Tensor,
    out: Tensor,
    columns: int,
    source_stride: int,
    out_stride: int,
    *,
    rows: int,
) -> None:
    """out[row] = source[idx_mapping[row]]; a negative one leaves the row of out as it is.

    idx_mapping int32[batch], source int32[requests, columns], out int32[batch, columns].
    """
    column = np.arange(columns)
    for row in range(rows):
        request = int(idx_mapping.load(row, row=row))
        if request < 0:
            continue
        blocks = source.load(request * source_stride + column, row=row)
        out.store(row * out_stride + column, blocks, row=row)
