"""Keys and values of new tokens into the slots of a paged cache, as reshape_and_cache does.

Program x = token. Not checked: the slot against the size of the caches.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "key": "*fp16",
    "value": "*fp16",
    "key_cache": "*fp16",
    "value_cache": "*fp16",
    "slots": "*i64",
}
CONSTANTS = {"WIDTH": 128}
NUM_WARPS = 4


@triton.jit
def scatter(key, value, key_cache, value_cache, slots, WIDTH: tl.constexpr):
    token = tl.program_id(0)
    lane = tl.arange(0, WIDTH)
    slot = tl.load(slots + token)
    k = tl.load(key + token * WIDTH + lane)
    v = tl.load(value + token * WIDTH + lane)
    tl.store(key_cache + slot * WIDTH + lane, k, mask=slot >= 0)
    tl.store(value_cache + slot * WIDTH + lane, v, mask=slot >= 0)
