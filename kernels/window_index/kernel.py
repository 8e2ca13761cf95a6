"""Slots that a windowed attention reads, per request; device side of `window_index`.

Semantics: what a builder of windowed attention derives from lengths and block tables, as for the
decode part of vLLM's v1/attention/backends/mla/sparse_swa.py: a list of slots and how many of it
count. It is right for the lengths it was built from and goes stale when they advance (vllm#41162:
Model Runner V2 of 0.12.0 to 0.20.2 built it once for all draft steps).
Row rule: grid x = request.
Not checked, as upstream: lengths against the width of the block table. A position past the row
reads what lies behind it. index is int32, so a slot past 32 bits wraps.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "seq_lens": "*i32",
    "block_table": "*i32",
    "index": "*i32",
    "lengths": "*i32",
    "table_stride": "i32",
    "index_stride": "i32",
    "block_size": "i32",
    "window": "i32",
}
CONSTANTS = {"TILE": 32}


@triton.jit
def window_index(
    seq_lens,
    block_table,
    index,
    lengths,
    table_stride,
    index_stride,
    block_size,
    window,
    TILE: tl.constexpr,
):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    length = tl.load(seq_lens + row)
    count = tl.minimum(length, window)
    tl.store(lengths + row, count)
    table_row = block_table + row.to(tl.int64) * table_stride
    index_row = index + row.to(tl.int64) * index_stride
    for start in range(0, count, TILE):
        entry = start + lane
        inside = entry < count
        position = length - count + entry
        block = tl.load(table_row + position // block_size, mask=inside, other=0).to(tl.int64)
        slot = block * block_size + position % block_size
        tl.store(index_row + entry, slot.to(tl.int32), mask=inside)
