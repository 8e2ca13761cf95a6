"""Whether rejection sampling looks up the probability of a draft token that is a placeholder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, Owned, UnclearError
from ..subject import Nothing, Pointer, Scalar, Subject

VOCABULARY, DRAFTS, REQUESTS = 8, 2, 2
PLACEHOLDER, BONUS = -1, 5
VALUES = {"refused": "no, it rejects it", "looked up": "yes, before the row of the token"}

SUBJECT = Subject(
    files=("v1/sample/rejection_sampler.py",),
    names=("rejection_random_sample_kernel",),
    roles={
        "output_token_ids": Pointer("i32"),
        "cu_num_draft_tokens": Pointer("i32"),
        "draft_token_ids": Pointer("i32"),
        "draft_probs": Nothing(),  # as for drafts that were taken greedily
        "target_probs": Pointer("fp32"),
        "bonus_token_ids": Pointer("i32"),
        "recovered_token_ids": Pointer("i32"),
        "uniform_probs": Pointer("fp64"),
        "is_greedy": Pointer("i1"),
        "max_spec_len": Scalar(DRAFTS),
        "vocab_size": Scalar(VOCABULARY),
        "synthetic_conditional_rates": Nothing(),
        "NO_DRAFT_PROBS": Scalar(True),
        "SYNTHETIC_MODE": Scalar(False),
    },
    needs=("draft_token_ids_ptr", "target_probs_ptr"),
)


def run(bench: Bench) -> Outcome:
    """Two requests with two drafts each: ids of the vocabulary, its ends among them, which must be
    clean; then a placeholder as the first draft of each."""
    drafts = [0, VOCABULARY - 1, VOCABULARY - 1, 0]
    found, tokens = _sample(bench, drafts)
    if found:
        raise UnclearError(f"ids of the vocabulary: {found[0]['kind']} of {found[0]['tensor']}")
    if tokens != [*drafts[:DRAFTS], BONUS, *drafts[DRAFTS:], BONUS]:
        raise UnclearError(f"certain drafts {drafts} came out as {tokens}")
    found, _ = _sample(bench, [PLACEHOLDER, 1, PLACEHOLDER, 1])
    return looked_up(found)


def looked_up(found: Sequence[Mapping[str, Any]]) -> Outcome:
    """What a placeholder led to."""
    said = f"draft token {PLACEHOLDER}: "
    if not found:
        return Outcome("refused", said + "no probability is looked up")
    said += "; ".join(
        f"{f['kind']} of element {f['elements'][0]} of {f['tensor']} for request {f['request']}"
        for f in found
    )
    return Outcome("looked up", said, found)


def _sample(bench: Bench, drafts: Sequence[int]) -> tuple[list[Mapping[str, Any]], list[int]]:
    """Launch for both requests: the findings, and the tokens, each request's bonus last."""
    rows = REQUESTS * DRAFTS
    owners = [request for request in range(REQUESTS) for _ in range(DRAFTS)]
    probabilities = bench.tensor(
        "target_probs", "fp32", [1.0] * (rows * VOCABULARY), Owned(VOCABULARY, owners)
    )
    tokens = bench.tensor("output_token_ids", "i32", [-7] * (REQUESTS * (DRAFTS + 1)))
    found = bench.launch(
        (REQUESTS, 1, 1),
        {
            "output_token_ids": tokens,
            "bonus_token_ids": bench.tensor("bonus_token_ids", "i32", [BONUS] * REQUESTS),
            "cu_num_draft_tokens": bench.tensor("cu_num_draft_tokens", "i32", [DRAFTS, rows]),
            "draft_token_ids": bench.tensor("draft_token_ids", "i32", drafts),
            "target_probs": probabilities,
            "uniform_probs": bench.tensor("uniform_probs", "fp64", [0.5] * rows),
            "is_greedy": bench.tensor("is_greedy", "i1", [0] * REQUESTS),
        },
        request=list(range(REQUESTS)),
    )
    return found, tokens.values


PROBE = KernelProbe(
    "rejection_kernel",
    "does rejection sampling look up the probability of a placeholder?",
    SUBJECT,
    VALUES,
    run,
    "there is no such kernel",
)
