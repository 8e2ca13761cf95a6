"""How many tokens each expert gets, counted with atomics.

Program x = 32 routed tokens. Not checked: the expert's number.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {"experts": "*i32", "counts": "*i32"}
CONSTANTS = {"TILE": 32}
NUM_WARPS = 1


@triton.jit
def expert_counts(experts, counts, TILE: tl.constexpr):
    token = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.atomic_add(counts + tl.load(experts + token), 1)
