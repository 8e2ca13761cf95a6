"""Merge partial attention results by their log-sum-exp; the plain-Python side of `merge_states`.

Semantics, origin, row rule and what is not checked: see kernel.cu beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def merge_states(
    partial_out: Tensor,
    partial_lse: Tensor,
    split: Tensor,
    out: Tensor,
    heads: int,
    head_dim: int,
    out_stride: int,
    indptr_at: int,
    *,
    rows: int,
) -> None:
    """out[row] = mean of partial_out over the row's chunks, weighted by exp(partial_lse).

    Chunks split[indptr_at + row] ... split[indptr_at + row + 1] - 1. partial_out fp32[chunks,
    heads, head_dim], partial_lse fp32[chunks, heads], split int32[...], out fp32[requests, heads,
    head_dim]. No chunk, or none with weight: 0. Computed in fp64, so that the error of the device
    kernel is its own.
    """
    head = np.arange(heads)
    head_at = head[:, None] * head_dim + np.arange(head_dim)
    for row in range(rows):
        first = int(split.load(indptr_at + row, row=row))
        last = int(split.load(indptr_at + row + 1, row=row))
        chunk = np.arange(first, last)
        lse = partial_lse.load(chunk[:, None] * heads + head, row=row).astype(np.float64)
        element = chunk[:, None, None] * (heads * head_dim) + head_at  # [chunks, heads, dims]
        value = partial_out.load(element, row=row).astype(np.float64)
        weightless = (lse == -np.inf).all(0)
        peak = np.where(weightless, 0, lse.max(0, initial=-np.inf))
        with np.errstate(invalid="ignore"):  # a wrong row may hold infinities
            weight = np.exp(lse - peak)
            total = np.where(weightless, 1, weight.sum(0))
            mixed = (weight[:, :, None] * value).sum(0) / total[:, None]
        out.store(row * out_stride + head_at, mixed, row=row)
