"""Accept drafts from the left, then one recovered or bonus token; the plain-Python side.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Array, Tensor

PLACEHOLDER = -1


def rejection_sample(
    draft_start: Tensor,
    draft_tokens: Tensor,
    draft_probs: Tensor | None,
    target_probs: Tensor,
    bonus_tokens: Tensor,
    uniform: Tensor,
    noise: Tensor,
    output: Tensor,
    output_stride: int,
    vocab: int,
    greedy: int,
    has_draft_probs: int,
    *,
    rows: int,
) -> None:
    """output[row] = accepted drafts, one recovered or bonus token, -1 for the rest.

    draft_start int32[requests + 1], draft_tokens int32[drafts], draft_probs fp32[drafts, vocab] or
    None, target_probs fp32[drafts, vocab], bonus_tokens int32[requests], uniform fp32[drafts],
    noise fp32[requests, vocab], output int32[requests, output_stride].
    """
    ids = np.arange(vocab)
    proposal = draft_probs if has_draft_probs else None

    def accepted(draft: int, token: int, row: int) -> bool:
        if token == PLACEHOLDER:
            return False
        p = target_probs.load(draft * vocab + token, row=row)
        u = uniform.load(draft, row=row)
        if proposal is None:
            return bool(p >= u)
        q = proposal.load(draft * vocab + token, row=row)
        return bool(q > 0 and p >= u * q)

    def recovered(draft: int, token: int, row: int) -> int:
        p = target_probs.load(draft * vocab + ids, row=row)
        if proposal is not None:
            p = p - proposal.load(draft * vocab + ids, row=row)
        else:
            p = np.where(ids == token, np.float32(0), p)
        return largest(np.fmax(p, 0) / noise.load(row * vocab + ids, row=row))

    for row in range(rows):
        first = int(draft_start.load(row, row=row))
        drafts = int(draft_start.load(row + 1, row=row)) - first
        tokens: list[int] = []
        rejected = False
        while len(tokens) < drafts and not rejected:
            draft = first + len(tokens)
            token = int(draft_tokens.load(draft, row=row))
            if greedy:
                chosen = largest(target_probs.load(draft * vocab + ids, row=row))
                rejected = chosen != token
            else:
                with np.errstate(all="ignore"):  # noise 0 is the caller's, as upstream
                    rejected = not accepted(draft, token, row)
                    chosen = recovered(draft, token, row) if rejected else token
            tokens.append(chosen)
        if not rejected:
            tokens.append(int(bonus_tokens.load(row, row=row)))
        at = row * output_stride + np.arange(max(output_stride, len(tokens)))
        tokens += [PLACEHOLDER] * (output_stride - len(tokens))
        output.store(at, tokens, row=row)


def largest(weights: Array) -> int:
    """The lowest index of the largest weight, not-a-numbers aside; 0 where all are."""
    return int(np.argmax(np.where(np.isnan(weights), -np.inf, weights)))
