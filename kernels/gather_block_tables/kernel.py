"""Block tables from request order to batch order; device side of `gather_block_tables`.

Semantics: the gather kernel of vLLM's Model Runner V2 (v1/worker/gpu/block_table.py). Tables are
kept by request slot; each step copies the rows of its batch into tables of its own. Whoever still
holds those tables in a later step sees other requests' rows (vllm#55951).
Row rule: grid x = batch row.
Not checked, as upstream: idx_mapping against the rows of the source. A negative one (a padded batch
row) is skipped, as from 0.31.0 on, and its row of out is left as it is.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "idx_mapping": "*i32",
    "source": "*i32",
    "out": "*i32",
    "columns": "i32",
    "source_stride": "i32",
    "out_stride": "i32",
}
CONSTANTS = {"TILE": 32}


@triton.jit
def gather_block_tables(
    idx_mapping,
    source,
    out,
    columns,
    source_stride,
    out_stride,
    TILE: tl.constexpr,
):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    request = tl.load(idx_mapping + row).to(tl.int64)
    if request < 0:
        return
    source_row = source + request * source_stride
    out_row = out + row.to(tl.int64) * out_stride
    for start in range(0, columns, TILE):
        column = start + lane
        inside = column < columns
        blocks = tl.load(source_row + column, mask=inside, other=0)
        tl.store(out_row + column, blocks, mask=inside)
