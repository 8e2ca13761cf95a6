"""Copy state blocks at block borders; device side of `state_copy`.

Semantics: the copies of vLLM's v1/worker/mamba_utils.py in the "align" mode of prefix caching: the
running state of a request is kept, or taken up again, where its tokens cross the border of a block.
A negative row or column, equal columns or a null block (0) on either side: nothing.
Row rule: grid x = batch row. Which table idx_mapping indexes is the caller's: upstream bound the
tables gathered in batch order under pipeline parallelism up to 0.31.0 (vllm#55951), tables in
request order from 0.32.0 on.
Not checked, as upstream: rows and columns against the table (vllm#53142: a column in the wrong
unit), blocks against the state.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "state": "*fp32",
    "block_table": "*i32",
    "idx_mapping": "*i32",
    "source_column": "*i32",
    "target_column": "*i32",
    "size": "i32",
    "state_stride": "i32",
    "table_stride": "i32",
}
CONSTANTS = {"TILE": 128}
NUM_WARPS = 4  # one element a thread


@triton.jit
def state_copy(
    state,
    block_table,
    idx_mapping,
    source_column,
    target_column,
    size,
    state_stride,
    table_stride,
    TILE: tl.constexpr,
):
    row = tl.program_id(0)
    request = tl.load(idx_mapping + row).to(tl.int64)
    if request < 0:
        return
    source = tl.load(source_column + row)
    target = tl.load(target_column + row)
    if (source < 0) | (target < 0) | (source == target):
        return
    table_row = block_table + request * table_stride
    source_block = tl.load(table_row + source).to(tl.int64)
    target_block = tl.load(table_row + target).to(tl.int64)
    if (source_block == 0) | (target_block == 0):
        return
    from_block = state + source_block * state_stride
    to_block = state + target_block * state_stride
    for start in range(0, size, TILE):
        element = start + tl.arange(0, TILE)
        inside = element < size
        values = tl.load(from_block + element, mask=inside, other=0.0)
        tl.store(to_block + element, values, mask=inside)
