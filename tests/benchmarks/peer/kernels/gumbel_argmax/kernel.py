"""A token of each request by Gumbel noise: argmax of logits - log(-log u), u of Philox.

Program x = request. Not checked: the size of the vocabulary against the rows of the logits.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "logits": "*fp32",
    "sizes": "*i32",
    "sampled": "*i32",
    "stride": "i32",
    "seed": "i32",
}
CONSTANTS = {"TILE": 1024}
NUM_WARPS = 4


@triton.jit
def gumbel_argmax(logits, sizes, sampled, stride, seed, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    size = tl.load(sizes + row)
    best = tl.full([TILE], float("-inf"), tl.float32)
    best_id = lane
    for start in range(0, size, TILE):
        ids = start + lane
        inside = ids < size
        score = tl.load(logits + row * stride + ids, mask=inside, other=float("-inf"))
        u = tl.maximum(tl.rand(seed, row * stride + ids), 1e-7)
        score -= tl.log(-tl.log(u))
        better = inside & (score > best)
        best = tl.where(better, score, best)
        best_id = tl.where(better, ids, best_id)
    chosen = tl.min(tl.where(best == tl.max(best, 0), best_id, size), 0)
    tl.store(sampled + row, chosen)
