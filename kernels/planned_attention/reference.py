"""Split-KV decode attention by a plan; the plain-Python side of `planned_attention`.

Semantics, origin, row rule and what is not checked: see kernel.cu beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def planned_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    page_indptr: Tensor,
    page_indices: Tensor,
    last_page_len: Tensor,
    split: Tensor,
    partial_out: Tensor,
    partial_lse: Tensor,
    heads: int,
    head_dim: int,
    group: int,
    query_stride: int,
    cache_stride: int,
    pages_in_chunk: int,
    request_at: int,
    tile_at: int,
    block_size: int,
    scale: float,
    *,
    rows: int,
) -> None:
    """partial_out[row], partial_lse[row] = attention over chunk row's positions, its log-sum-exp.

    query fp16[requests, heads, head_dim], caches fp16[slots, kv heads, head_dim], page_indptr
    int32[requests + 1], page_indices int32[pages], last_page_len int32[requests], split int32[...]:
    at request_at + row the request of the chunk, at tile_at + row its number within that request.
    partial_out fp32[chunks, heads, head_dim], partial_lse fp32[chunks, heads], natural log. A chunk
    without positions: 0 and -inf. Computed in fp64, so that the error of the device kernel is its
    own.
    """
    head = np.arange(heads)
    dim = np.arange(head_dim)
    head_at = head[:, None] * head_dim + dim
    kv_at = head[:, None] // group * head_dim + dim
    for row in range(rows):
        request = int(split.load(request_at + row, row=row))
        tile = int(split.load(tile_at + row, row=row))
        first_page = int(page_indptr.load(request, row=row))
        pages = int(page_indptr.load(request + 1, row=row)) - first_page
        length = (pages - 1) * block_size + int(last_page_len.load(request, row=row))
        begin = tile * pages_in_chunk * block_size
        position = np.arange(begin, min(length, begin + pages_in_chunk * block_size))
        out_at = row * heads * head_dim + head_at
        lse_at = row * heads + head
        if position.size == 0:
            partial_out.store(out_at, 0, row=row)
            partial_lse.store(lse_at, -np.inf, row=row)
            continue
        q = query.load(request * query_stride + head_at, row=row).astype(np.float64)
        offset = np.fmod(position, block_size)  # C's division, as on the device: to zero
        page = page_indices.load(first_page + (position - offset) // block_size, row=row)
        slot = page.astype(np.int64) * block_size + offset
        element = slot[:, None, None] * cache_stride + kv_at  # [positions, heads, dims]
        key = key_cache.load(element, row=row).astype(np.float64)
        value = value_cache.load(element, row=row).astype(np.float64)
        with np.errstate(invalid="ignore"):  # a wrong page may hold infinities
            score = (q * key).sum(2) * scale
            peak = score.max(0)
            weight = np.exp(score - peak)
            total = weight.sum(0)
            mixed = (weight[:, :, None] * value).sum(0) / total[:, None]
        partial_out.store(out_at, mixed, row=row)
        partial_lse.store(lse_at, peak + np.log(total), row=row)
