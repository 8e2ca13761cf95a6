"""Causal attention of each request's last tokens over its paged KV cache; device side.

Semantics: vLLM's Triton attention backend, reduced to what the cases need: no `tl.dot`, one
key/value head for `group` query heads, optional sliding window.
A query at position p of a request sees positions 0..p, or the last `window` of them, itself
included; a query that sees nothing gets 0. Online softmax in fp32.
Row rule: grid x = request, grid y = query head.
Not checked, as upstream: block ids, and seq_lens against the width of the block table. Only
visible positions are read from the block table and from the caches.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "query": "*fp16",
    "key_cache": "*fp16",
    "value_cache": "*fp16",
    "block_table": "*i32",
    "query_start": "*i32",
    "seq_lens": "*i32",
    "out": "*fp32",
    "head_dim": "i32",
    "group": "i32",
    "query_stride": "i32",
    "out_stride": "i32",
    "cache_stride": "i32",
    "table_stride": "i32",
    "block_size": "i32",
    "window": "i32",
    "scale": "fp32",
}
CONSTANTS = {"TILE": 32, "DIM_TILE": 16}
NUM_WARPS = 4  # 4 elements a thread: a short program, and most cases' lengths are one or two tiles
LIMITS = {"head_dim": CONSTANTS["DIM_TILE"]}


@triton.jit
def paged_attention(
    query,
    key_cache,
    value_cache,
    block_table,
    query_start,
    seq_lens,
    out,
    head_dim,
    group,
    query_stride,
    out_stride,
    cache_stride,
    table_stride,
    block_size,
    window,
    scale,
    TILE: tl.constexpr,
    DIM_TILE: tl.constexpr,
):
    row = tl.program_id(0)
    head = tl.program_id(1)
    lane = tl.arange(0, TILE)
    dim = tl.arange(0, DIM_TILE)
    in_head = dim < head_dim
    head_at = head * head_dim + dim
    kv_at = head // group * head_dim + dim
    table_row = block_table + row.to(tl.int64) * table_stride
    first = tl.load(query_start + row)
    last = tl.load(query_start + row + 1)
    length = tl.load(seq_lens + row)
    for token in range(first, last):
        at = tl.cast(token, tl.int64)
        q = tl.load(query + at * query_stride + head_at, mask=in_head, other=0).to(tl.float32)
        q *= scale
        end = length - last + token + 1
        lowest = 0
        if window > 0:
            lowest = tl.maximum(end - window, 0)
        peak = float("-inf")
        total = 0.0
        mixed = tl.zeros([DIM_TILE], tl.float32)
        for start in range(lowest, end, TILE):
            position = start + lane
            seen = position < end
            block = tl.load(table_row + position // block_size, mask=seen, other=0).to(tl.int64)
            slot = block * block_size + position % block_size
            element = slot[:, None] * cache_stride + kv_at[None, :]
            visible = seen[:, None] & in_head[None, :]
            key = tl.load(key_cache + element, mask=visible, other=0).to(tl.float32)
            score = tl.where(seen, tl.sum(q[None, :] * key, 1), float("-inf"))
            higher = tl.maximum(peak, tl.max(score, 0))
            weight = tl.exp(score - higher)
            shrink = tl.exp(peak - higher)
            value = tl.load(value_cache + element, mask=visible, other=0).to(tl.float32)
            mixed = mixed * shrink + tl.sum(weight[:, None] * value, 0)
            total = total * shrink + tl.sum(weight, 0)
            peak = higher
        mixed = tl.where(total > 0, tl.div_rn(mixed, total), 0.0)
        tl.store(out + at * out_stride + head_at, mixed, mask=in_head)
