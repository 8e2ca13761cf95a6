"""Recurrent gated delta rule on indexed states; device side of `gated_delta_rule`.

Semantics: the recurrent kernel of gated delta nets in vLLM (third_party/flash_linear_attention/ops/
fused_recurrent.py). Without `accepted` a request goes on from its state block and leaves the last
state there. With it (speculative decoding) the state after token t goes to column t, and the next
step starts from column accepted - 1. A request without tokens, or whose start index is <= 0, leaves
everything as it is, its part of `out` too; a target index <= 0 is not written.
Row rule: grid x = request, grid y = head.
Not checked, as in every release from 0.11.0 to 0.33.0 (vllm#50021 is open): the accepted count
against the columns (0 reads the index before the row, a large one what lies behind it), and the
index against the number of state blocks. The number of tokens against the columns neither.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "q": "*fp32",
    "k": "*fp32",
    "v": "*fp32",
    "decay": "*fp32",
    "beta": "*fp32",
    "state": "*fp32",
    "state_index": "*i32",
    "accepted": "*i32",
    "query_start": "*i32",
    "out": "*fp32",
    "heads": "i32",
    "key_dim": "i32",
    "value_dim": "i32",
    "index_stride": "i32",
    "state_stride": "i32",
    "has_accepted": "i32",
}
CONSTANTS = {"VALUE_TILE": 16, "KEY_TILE": 16}
NUM_WARPS = 4  # two elements a thread
LIMITS = {"value_dim": CONSTANTS["VALUE_TILE"], "key_dim": CONSTANTS["KEY_TILE"]}
NULLABLE = ("accepted",)


@triton.jit
def gated_delta_rule(
    q,
    k,
    v,
    decay,
    beta,
    state,
    state_index,
    accepted,
    query_start,
    out,
    heads,
    key_dim,
    value_dim,
    index_stride,
    state_stride,
    has_accepted,
    VALUE_TILE: tl.constexpr,
    KEY_TILE: tl.constexpr,
):
    row = tl.program_id(0)
    head = tl.program_id(1)
    first = tl.load(query_start + row)
    count = tl.load(query_start + row + 1) - first
    if count <= 0:
        return
    column = tl.load(accepted + row, mask=has_accepted != 0, other=1) - 1
    columns = state_index + row.to(tl.int64) * index_stride
    start = tl.load(columns + column).to(tl.int64)
    if start <= 0:
        return
    key = tl.arange(0, KEY_TILE)
    value = tl.arange(0, VALUE_TILE)
    in_key = key < key_dim
    in_value = value < value_dim
    inside = in_value[:, None] & in_key[None, :]
    in_block = (head * value_dim + value)[:, None] * key_dim + key[None, :]
    s = tl.load(state + start * state_stride + in_block, mask=inside, other=0.0)
    for i in range(count):
        at = (first + i).to(tl.int64) * heads + head
        queries = tl.load(q + at * key_dim + key, mask=in_key, other=0.0)
        keys = tl.load(k + at * key_dim + key, mask=in_key, other=0.0)
        values = tl.load(v + at * value_dim + value, mask=in_value, other=0.0)
        s *= tl.exp(tl.load(decay + at))
        change = (values - tl.sum(s * keys[None, :], 1)) * tl.load(beta + at)
        s += change[:, None] * keys[None, :]
        answer = tl.sum(s * queries[None, :], 1)
        tl.store(out + at * value_dim + value, answer, mask=in_value)
        if has_accepted != 0:
            target = tl.load(columns + i).to(tl.int64)
            if target > 0:
                tl.store(state + target * state_stride + in_block, s, mask=inside)
    if has_accepted == 0:
        tl.store(state + start * state_stride + in_block, s, mask=inside)
