"""Causal attention over a paged KV cache; the plain-Python side of `paged_attention`.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def paged_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_table: Tensor,
    query_start: Tensor,
    seq_lens: Tensor,
    out: Tensor,
    head_dim: int,
    group: int,
    query_stride: int,
    out_stride: int,
    cache_stride: int,
    table_stride: int,
    block_size: int,
    window: int,
    scale: float,
    *,
    rows: int,
) -> None:
    """out[t] = softmax(scale * query[t] . keys) . values over the positions that t sees.

    query fp16[tokens, heads, head_dim], key_cache, value_cache fp16[slots, kv heads, head_dim],
    block_table int32[requests, columns], query_start int32[requests + 1], seq_lens int32[requests],
    out fp32[tokens, heads, head_dim]. `group` query heads share a kv head. window 0: all before.
    Computed in fp64, so that the error of the device kernel is its own.
    """
    heads = np.arange(query.shape[1])[:, None]
    dims = np.arange(head_dim)
    head_at = heads * head_dim + dims
    kv_at = heads // group * head_dim + dims
    for row in range(rows):
        first = int(query_start.load(row, row=row))
        last = int(query_start.load(row + 1, row=row))
        length = int(seq_lens.load(row, row=row))
        for token in range(first, last):
            q = query.load(token * query_stride + head_at, row=row).astype(np.float64)
            end = length - last + token + 1
            position = np.arange(max(0, end - window) if window > 0 else 0, end)
            if position.size == 0:
                out.store(token * out_stride + head_at, 0, row=row)
                continue
            block = block_table.load(row * table_stride + position // block_size, row=row)
            slot = block.astype(np.int64) * block_size + position % block_size
            element = slot[:, None, None] * cache_stride + kv_at  # [positions, heads, dims]
            key = key_cache.load(element, row=row).astype(np.float64)
            value = value_cache.load(element, row=row).astype(np.float64)
            with np.errstate(invalid="ignore"):  # a wrong block may hold infinities
                score = (q * key).sum(2) * scale
                weight = np.exp(score - score.max(0))
                mixed = (weight[:, :, None] * value).sum(0) / weight.sum(0)[:, None]
            out.store(token * out_stride + head_at, mixed, row=row)
