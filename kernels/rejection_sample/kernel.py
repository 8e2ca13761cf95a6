"""Accept drafts from the left, then one recovered or bonus token, then -1; device side.

Semantics: vLLM's v1/sample/rejection_sampler.py.
  greedy  every token is the argmax of the target (the lowest id of equals); the first draft that
          differs from it is the last one looked at.
  random  a draft is accepted iff q > 0 and p >= u * q, with p and q its probability under target
          and draft and q = 1 where the draft has no distribution (NO_DRAFT_PROBS upstream). Else
          the recovered token: argmax of max(p - q, 0) / noise, q being 1 at the draft token and 0
          elsewhere where the draft has no distribution.
All accepted: the bonus token follows. The rest of the row becomes -1 (upstream's
PLACEHOLDER_TOKEN_ID, filled by the host there). A draft token -1 is never accepted.
Row rule: grid x = request. The row of `output` is as long as its stride.
Not checked, as upstream: the range of draft token ids (vllm#58080 relies on it: 0 is an ordinary
token) and the number of drafts against the row of `output`.
Products are not fused and the division is rounded to nearest, so tokens are the reference's.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton resolves annotations as values of the kernel, so its parameters have none.
from __future__ import annotations

import triton
import triton.language as tl

SIGNATURE = {
    "draft_start": "*i32",
    "draft_tokens": "*i32",
    "draft_probs": "*fp32",
    "target_probs": "*fp32",
    "bonus_tokens": "*i32",
    "uniform": "*fp32",
    "noise": "*fp32",
    "output": "*i32",
    "output_stride": "i32",
    "vocab": "i32",
    "greedy": "i32",
    "has_draft_probs": "i32",
}
CONSTANTS = {"TILE": 32}
NULLABLE = ("draft_probs",)


@triton.jit
def rejection_sample(
    draft_start,
    draft_tokens,
    draft_probs,
    target_probs,
    bonus_tokens,
    uniform,
    noise,
    output,
    output_stride,
    vocab,
    greedy,
    has_draft_probs,
    TILE: tl.constexpr,
):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    first = tl.load(draft_start + row)
    drafts = tl.load(draft_start + row + 1) - first
    output_row = output + row.to(tl.int64) * output_stride
    noise_row = noise + row.to(tl.int64) * vocab
    filled = 0
    rejected = False
    while (filled < drafts) & (rejected == 0):
        draft = first.to(tl.int64) + filled
        target_row = target_probs + draft * vocab
        draft_row = draft_probs + draft * vocab
        token = tl.load(draft_tokens + draft)
        tried = (greedy == 0) & (token != -1)
        p = tl.load(target_row + token, mask=tried, other=0.0)
        q = tl.load(draft_row + token, mask=tried & (has_draft_probs != 0), other=1.0)
        u = tl.load(uniform + draft, mask=tried, other=0.0)
        accepted = tried & (q > 0) & (p >= u * q)
        if accepted == 0:
            best = tl.full([TILE], float("-inf"), tl.float32)
            best_id = lane
            for start in range(0, vocab, TILE):
                ids = start + lane
                inside = ids < vocab
                weight = tl.load(target_row + ids, mask=inside, other=0.0)
                if greedy == 0:
                    known = inside & (has_draft_probs != 0)
                    drafted = tl.load(draft_row + ids, mask=known, other=0.0)
                    drafted = tl.where(known | (ids != token), drafted, weight)
                    share = tl.load(noise_row + ids, mask=inside, other=1.0)
                    weight = tl.div_rn(tl.maximum(weight - drafted, 0.0), share)
                better = inside & (weight > best)
                best = tl.where(better, weight, best)
                best_id = tl.where(better, ids, best_id)
            chosen = tl.min(tl.where(best == tl.max(best, 0), best_id, vocab), 0)
            rejected = (greedy == 0) | (chosen != token)
            token = chosen
        tl.store(output_row + filled, token)
        filled += 1
    if rejected == 0:
        tl.store(output_row + filled, tl.load(bonus_tokens + row))
        filled += 1
    for start in range(filled, output_stride, TILE):
        column = start + lane
        tl.store(output_row + column, tl.full([TILE], -1, tl.int32), mask=column < output_stride)
