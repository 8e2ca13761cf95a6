"""A sum of two vectors: no address depends on what is loaded.

Program x = 1024 elements. Not checked: the size against the vectors.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {"left": "*fp32", "right": "*fp32", "out": "*fp32", "size": "i32"}
CONSTANTS = {"TILE": 1024}
NUM_WARPS = 4


@triton.jit
def vector_add(left, right, out, size, TILE: tl.constexpr):
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = at < size
    a = tl.load(left + at, mask=inside)
    b = tl.load(right + at, mask=inside)
    tl.store(out + at, a + b, mask=inside)
