"""Slots of the tokens of a batch; device side of `slot_mapping`.

Semantics: the slot-mapping kernels of vLLM's two model runners (v1/worker/block_table.py and
v1/worker/gpu/block_table.py), which compute the same.
Row rule: grid x = request; one program more, the last, pads.
Not checked, as in every release from 0.11.0 to 0.33.0 (vllm#54296 is open): whether a position lies
within the row of the block table. A position past it reads what lies behind the row.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "query_start": "*i32",
    "positions": "*i64",
    "block_table": "*i32",
    "slots": "*i64",
    "num_requests": "i32",
    "num_slots": "i32",
    "table_stride": "i32",
    "block_size": "i32",
}
CONSTANTS = {"TILE": 32}


@triton.jit
def slot_mapping(
    query_start,
    positions,
    block_table,
    slots,
    num_requests,
    num_slots,
    table_stride,
    block_size,
    TILE: tl.constexpr,
):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    first = tl.load(query_start + row)
    if row == num_requests:
        for start in range(first, num_slots, TILE):
            token = start + lane
            tl.store(slots + token, tl.full([TILE], -1, tl.int64), mask=token < num_slots)
        return
    last = tl.load(query_start + row + 1)
    table_row = block_table + row.to(tl.int64) * table_stride
    for start in range(first, last, TILE):
        token = start + lane
        inside = token < last
        position = tl.load(positions + token, mask=inside, other=0)
        block = tl.load(table_row + position // block_size, mask=inside, other=0).to(tl.int64)
        tl.store(slots + token, block * block_size + position % block_size, mask=inside)
