"""Next position, length and slot of every request between two draft steps; device side.

Semantics: the draft loop of vLLM. at_limit says what becomes of a position >= limit:
  IGNORE  nothing is guarded, as reported for vllm#40756 (no release from 0.11.0 to 0.33.0 does it);
  PAD     slot -1 and length 1; the position runs on, so the request stays padded: the inline code
          of Model Runner V1 up to 0.17.1 (v1/spec_decode/eagle.py);
  CLAMP   the position stays at limit - 1 and the length at limit, the last slot is written again:
          Model Runner V2, 0.12.0 to 0.33.0 (the `_update_*inputs_kernel` of its speculators).
The fused kernel of V1 from 0.18.0 on (v1/spec_decode/utils.py) is none of the three: it writes
position 0 back where it pads, and so resumes at position 1 if it is ever asked again.
Row rule: grid x = request. One request a program.
Not checked, as upstream (vllm#54296): whether the position lies within the block-table row.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "positions": "*i64",
    "seq_lens": "*i32",
    "block_table": "*i32",
    "slots": "*i64",
    "table_stride": "i32",
    "block_size": "i32",
    "limit": "i32",
    "at_limit": "i32",
}
CONSTANTS: dict[str, int] = {}

PAD = tl.constexpr(1)
CLAMP = tl.constexpr(2)


@triton.jit
def draft_step(
    positions,
    seq_lens,
    block_table,
    slots,
    table_stride,
    block_size,
    limit,
    at_limit,
):
    row = tl.program_id(0)
    position = tl.load(positions + row) + 1
    length = tl.load(seq_lens + row) + 1
    if at_limit == CLAMP:
        position = tl.minimum(position, limit - 1)
        length = tl.minimum(length, limit)
    padded = (at_limit == PAD) & (position >= limit)
    length = tl.where(padded, 1, length)
    tl.store(positions + row, position)
    tl.store(seq_lens + row, length)
    table_row = block_table + row.to(tl.int64) * table_stride
    block = tl.load(table_row + position // block_size, mask=padded == 0, other=0).to(tl.int64)
    slot = block * block_size + position % block_size
    tl.store(slots + row, tl.where(padded, -1, slot))
