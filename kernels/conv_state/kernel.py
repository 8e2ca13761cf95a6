"""Causal depthwise convolution with an indexed history; device side of `conv_state`.

Semantics: `causal_conv1d_update` of vLLM's model_executor/layers/mamba/ops/causal_conv1d.py for one
state a request, without bias and activation: the last width - 1 inputs of a request live in the
state block that its index names. An index <= 0 (null block, padding) returns and leaves out and
state as they are, and so does a request without tokens.
Row rule: grid x = request.
Not checked, as upstream: the index against the number of state blocks.
Sums run from the oldest input on and are not fused, so results are the reference's.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "x": "*fp32",
    "weight": "*fp32",
    "state": "*fp32",
    "state_index": "*i32",
    "query_start": "*i32",
    "out": "*fp32",
    "dim": "i32",
    "width": "i32",
    "x_stride": "i32",
    "out_stride": "i32",
    "state_stride": "i32",
}
CONSTANTS = {"TOKEN_TILE": 8, "DIM_TILE": 16, "HISTORY_TILE": 8}
NUM_WARPS = 4  # one element a thread
LIMITS = {"width": CONSTANTS["HISTORY_TILE"] + 1}


@triton.jit
def conv_state(
    x,
    weight,
    state,
    state_index,
    query_start,
    out,
    dim,
    width,
    x_stride,
    out_stride,
    state_stride,
    TOKEN_TILE: tl.constexpr,
    DIM_TILE: tl.constexpr,
    HISTORY_TILE: tl.constexpr,
):
    row = tl.program_id(0)
    block = tl.load(state_index + row).to(tl.int64)
    if block <= 0:
        return
    first = tl.load(query_start + row)
    count = tl.load(query_start + row + 1) - first
    if count <= 0:
        return
    history = width - 1
    state_block = state + block * state_stride
    x_rows = x + first.to(tl.int64) * x_stride
    out_rows = out + first.to(tl.int64) * out_stride
    for start_dim in range(0, dim, DIM_TILE):
        channel = start_dim + tl.arange(0, DIM_TILE)[None, :]
        in_dim = channel < dim
        for start in range(0, count, TOKEN_TILE):
            token = start + tl.arange(0, TOKEN_TILE)[:, None]
            inside = (token < count) & in_dim
            total = tl.zeros([TOKEN_TILE, DIM_TILE], tl.float32)
            for i in range(width):
                entry = token + i  # of the history, then the tokens
                old = inside & (entry < history)
                new = inside & (entry >= history)
                at = (entry - history).to(tl.int64) * x_stride + channel
                before = tl.load(state_block + channel * history + entry, mask=old, other=0.0)
                value = tl.load(x_rows + at, mask=new, other=0.0)
                factor = tl.load(weight + channel * width + i, mask=in_dim, other=0.0)
                total += factor * tl.where(old, before, value)
            tl.store(out_rows + token.to(tl.int64) * out_stride + channel, total, mask=inside)
        kept = tl.arange(0, HISTORY_TILE)[:, None]
        entry = kept + count
        inside = (kept < history) & in_dim
        old = inside & (entry < history)
        new = inside & (entry >= history)
        at = (entry - history).to(tl.int64) * x_stride + channel
        before = tl.load(state_block + channel * history + entry, mask=old, other=0.0)
        value = tl.load(x_rows + at, mask=new, other=0.0)
        tl.debug_barrier()  # the history moves within its block: all of it is read by now
        moved = tl.where(old, before, value)
        tl.store(state_block + channel * history + kept, moved, mask=inside)
