"""Attention of one query a request over its paged cache, softmax online.

Program x = request, y = head. Not checked: the block ids against the size of the caches.
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
    "lengths": "*i32",
    "out": "*fp32",
    "heads": "i32",
    "head_dim": "i32",
    "table_stride": "i32",
    "scale": "fp32",
}
CONSTANTS = {"BLOCK": 16, "DIM": 64}
NUM_WARPS = 4


@triton.jit
def paged_decode(
    query,
    key_cache,
    value_cache,
    block_table,
    lengths,
    out,
    heads,
    head_dim,
    table_stride,
    scale,
    BLOCK: tl.constexpr,
    DIM: tl.constexpr,
):
    row = tl.program_id(0)
    head = tl.program_id(1)
    lane = tl.arange(0, BLOCK)
    dim = tl.arange(0, DIM)
    inside = dim < head_dim
    length = tl.load(lengths + row)
    at = (row * heads + head) * head_dim + dim
    q = tl.load(query + at, mask=inside, other=0.0).to(tl.float32) * scale
    peak = float("-inf")
    total = 0.0
    mixed = tl.zeros([DIM], tl.float32)
    for start in range(0, length, BLOCK):
        seen = start + lane < length
        visible = seen[:, None] & inside[None, :]
        block = tl.load(block_table + row * table_stride + start // BLOCK).to(tl.int64)
        element = ((block * BLOCK + lane)[:, None] * heads + head) * head_dim + dim[None, :]
        key = tl.load(key_cache + element, mask=visible, other=0.0).to(tl.float32)
        score = tl.where(seen, tl.sum(q[None, :] * key, 1), float("-inf"))
        higher = tl.maximum(peak, tl.max(score, 0))
        weight = tl.exp(score - higher)
        shrink = tl.exp(peak - higher)
        value = tl.load(value_cache + element, mask=visible, other=0.0).to(tl.float32)
        mixed = mixed * shrink + tl.sum(weight[:, None] * value, 0)
        total = total * shrink + tl.sum(weight, 0)
        peak = higher
    tl.store(out + at, mixed / total, mask=inside)
