"""Seeded Gumbel-max sampling by position; device side of `gumbel_sample`.

Semantics: the sampler of vLLM's Model Runner V2 (v1/worker/gpu/sample/gumbel.py). Logits divided by
the temperature are kept for the rejection sampler before noise is added; temperature 0 leaves them
as they are and adds none. The column they are kept at is a value, frozen where a graph captures the
launch (0.18.0 to 0.20.2: a slice made on the host), or is loaded from the device when the kernel
runs (vllm#41162, 0.21.0 and later).
Noise of (seed, position, token): upstream draws it from Philox; here it is a hash of 32-bit words,
  mix(x): x ^= x >> 16; x *= 0x7FEB352D; x ^= x >> 15; x *= 0x846CA68B; x ^= x >> 16
  s = mix(mix(mix(seed + G) ^ low half of position) ^ high half of position), G = 0x9E3779B9
  u = (mix(s + (token + 1) * G) >> 9 + 1/2) / 2**23, within (0, 1); noise = -log(-log(u))
in fp32, which the reference repeats exactly up to u. Tokens can differ only where two candidates
are within the rounding of the noise. The lowest id of equals wins, not-a-number never does.
Row rule: grid x = request.
Not checked, as upstream: the column against the columns of `processed`.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "logits": "*fp32",
    "positions": "*i64",
    "sampled": "*i32",
    "processed": "*fp32",
    "column_scalar": "*i32",
    "vocab": "i32",
    "logits_stride": "i32",
    "processed_stride": "i32",
    "column_stride": "i32",
    "column": "i32",
    "has_column_scalar": "i32",
    "seed": "i32",
    "temperature": "fp32",
}
CONSTANTS = {"TILE": 32}
NULLABLE = ("column_scalar",)

GOLDEN = tl.constexpr(0x9E3779B9)


@triton.jit
def mix(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def gumbel_sample(
    logits,
    positions,
    sampled,
    processed,
    column_scalar,
    vocab,
    logits_stride,
    processed_stride,
    column_stride,
    column,
    has_column_scalar,
    seed,
    temperature,
    TILE: tl.constexpr,
):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    position = tl.load(positions + row)
    place = tl.load(column_scalar, mask=has_column_scalar != 0, other=column).to(tl.int64)
    logits_row = logits + row.to(tl.int64) * logits_stride
    kept_row = processed + row.to(tl.int64) * processed_stride + place * column_stride
    state = mix(seed.to(tl.uint32, bitcast=True) + GOLDEN)
    state = mix(state ^ position.to(tl.uint32))
    state = mix(state ^ (position >> 32).to(tl.uint32))
    best = tl.full([TILE], float("-inf"), tl.float32)
    best_id = lane
    for start in range(0, vocab, TILE):
        ids = start + lane
        inside = ids < vocab
        score = tl.load(logits_row + ids, mask=inside, other=0.0)
        if temperature != 0:
            score = tl.div_rn(score, temperature)
        tl.store(kept_row + ids, score, mask=inside)
        if temperature != 0:
            bits = mix((ids.to(tl.uint32, bitcast=True) + 1) * GOLDEN + state)
            u = ((bits >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07
            score -= tl.log(-tl.log(u))
        better = inside & (score > best)
        best = tl.where(better, score, best)
        best_id = tl.where(better, ids, best_id)
    chosen = tl.min(tl.where(best == tl.max(best, 0), best_id, vocab), 0)
    tl.store(sampled + row, chosen)
