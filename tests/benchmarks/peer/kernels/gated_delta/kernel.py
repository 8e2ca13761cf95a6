"""One recurrent step of the gated delta rule on indexed states, in tiles as upstream cuts them.

Program x = request, y = tile of the value dimension. Not checked: the index against the states.
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
    "out": "*fp32",
    "values": "i32",
}
CONSTANTS = {"KEYS": 128, "TILE": 8}
NUM_WARPS = 4


@triton.jit
def gated_delta(
    q, k, v, decay, beta, state, state_index, out, values, KEYS: tl.constexpr, TILE: tl.constexpr
):
    row = tl.program_id(0)
    key = tl.arange(0, KEYS)
    value = tl.program_id(1) * TILE + tl.arange(0, TILE)
    index = tl.load(state_index + row).to(tl.int64)
    element = (index * values + value[:, None]) * KEYS + key[None, :]
    s = tl.load(state + element)
    queries = tl.load(q + row * KEYS + key)
    keys = tl.load(k + row * KEYS + key)
    s *= tl.exp(tl.load(decay + row))
    predicted = tl.sum(s * keys[None, :], 1)
    change = (tl.load(v + row * values + value) - predicted) * tl.load(beta + row)
    s += change[:, None] * keys[None, :]
    tl.store(out + row * values + value, tl.sum(s * queries[None, :], 1))
    tl.store(state + element, s)
