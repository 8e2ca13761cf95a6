"""Cache slots of the draft tokens of each request, through its row of the block table.

Program x = request. Not checked: the positions against the width of the table.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "lengths": "*i32",
    "block_table": "*i32",
    "slots": "*i64",
    "drafts": "i32",
    "table_stride": "i32",
}
CONSTANTS = {"BLOCK": 16, "TILE": 32}
NUM_WARPS = 1


@triton.jit
def draft_slots(
    lengths, block_table, slots, drafts, table_stride, BLOCK: tl.constexpr, TILE: tl.constexpr
):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    inside = lane < drafts
    position = tl.load(lengths + row) + lane
    entry = block_table + row * table_stride + position // BLOCK
    block = tl.load(entry, mask=inside, other=0).to(tl.int64)
    tl.store(slots + row * drafts + lane, block * BLOCK + position % BLOCK, mask=inside)
