"""Rotate the heads of every token by its position; the plain-Python side of `rope`.

Semantics, origin, row rule and what is not checked: see kernel.cu beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def rope(
    x: Tensor,
    positions: Tensor,
    table: Tensor,
    heads: int,
    head_dim: int,
    x_stride: int,
    table_stride: int,
    *,
    rows: int,
) -> None:
    """(a, b) becomes (a cos - b sin, b cos + a sin), a and b the halves of a head, in place.

    x fp16[tokens, heads, head_dim], positions int64[tokens], table fp32[positions, head_dim]: the
    cosines of a position, then its sines. An odd head_dim leaves the last element alone.
    """
    half = head_dim // 2
    pair = np.arange(half)
    firsts = np.arange(heads)[:, None] * head_dim + pair
    for row in range(rows):
        if heads * half == 0:
            continue
        cosines = int(positions.load(row, row=row)) * table_stride + pair
        c = table.load(cosines, row=row)
        s = table.load(cosines + half, row=row)
        at = row * x_stride + firsts
        a = x.load(at, row=row).astype(np.float32)
        b = x.load(at + half, row=row).astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # what a wrong row of the table may do
            x.store(at, (a * c - b * s).astype(np.float16), row=row)
            x.store(at + half, (b * c + a * s).astype(np.float16), row=row)
