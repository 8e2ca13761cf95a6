"""Whether runner V2's rejection sampling looks up a draft token that is a placeholder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, Owned, UnclearError
from ..subject import Nothing, Pointer, Scalar, Subject
from .rejection_kernel import PLACEHOLDER, VALUES, looked_up

VOCABULARY, DRAFTS, REQUESTS = 8, 2, 2
LOGITS = DRAFTS + 1  # rows of a request: its drafts, and the bonus
UNSET = -7

SUBJECT = Subject(
    files=(
        "v1/worker/gpu/spec_decode/rejection_sampler_utils.py",
        "v1/worker/gpu/spec_decode/probabilistic_rejection_sampler_utils.py",
        "v1/worker/gpu/spec_decode/rejection_sampler.py",
    ),
    names=(
        "_rejection_kernel",
        "_probabilistic_rejection_kernel",
        "_probabilistic_rejection_sample_kernel",
    ),
    helpers=("v1/worker/gpu/sample/gumbel.py",),
    roles={
        "sampled": Pointer("i64"),
        "sampled_stride": Scalar(LOGITS),
        "rejected_steps": Pointer("i64"),
        "rejected_pos": Pointer("i64"),
        "target_rejected_logsumexp": Pointer("fp32"),
        "draft_rejected_logsumexp": Pointer("fp32"),
        "target_logits": Pointer("fp32", also=("target_probs",)),
        "target_logits_stride": Scalar(VOCABULARY, also=("target_probs_stride",)),
        "target_local_argmax": Pointer("i64", also=("local_target_argmax",)),
        "target_local_argmax_stride": Scalar(1, also=("local_target_argmax_stride",)),
        "target_local_max": Pointer("fp32", also=("local_target_max",)),
        "target_local_max_stride": Scalar(1, also=("local_target_max_stride",)),
        "target_local_sumexp": Pointer("fp32", fill=1.0),
        "target_local_sumexp_stride": Scalar(1),
        "draft_sampled": Pointer("i64"),
        # far below the target's, so that a draft of the vocabulary is accepted for certain
        "draft_logits": Pointer("fp32", fill=0.25, also=("draft_probs",)),
        "draft_logits_stride_0": Scalar(DRAFTS * VOCABULARY, also=("draft_probs_stride_0",)),
        "draft_logits_stride_1": Scalar(
            VOCABULARY, also=("draft_probs_stride_1", "draft_probs_stride")
        ),
        "draft_local_max": Pointer("fp32"),
        "draft_local_max_stride": Scalar(1),
        "draft_local_sumexp": Pointer("fp32", fill=1.0),
        "draft_local_sumexp_stride": Scalar(1),
        "cu_num_logits": Pointer("i32"),
        "idx_mapping": Pointer("i32"),
        "temp": Pointer("fp32", fill=1.0),
        "seed": Pointer("i64", fill=5, also=("seeds",)),
        "pos": Pointer("i64", fill=9),
        "synthetic_conditional_rates": Nothing(),
        "cumulative_log_p": Nothing(),
        "local_residual_mass": Nothing(),
        "local_residual_mass_stride": Scalar(0),
        "fly_entropy": Nothing(),
        "fly_entropy_threshold": Scalar(0.0, "fp32"),
        "vocab_num_blocks": Scalar(1, also=("NUM_BLOCKS",)),
        "PADDED_VOCAB_NUM_BLOCKS": Scalar(1, also=("PADDED_NUM_BLOCKS",)),
        "HAS_DRAFT_LOGITS": Scalar(False),
        "SYNTHETIC_MODE": Scalar(False),
        "USE_BLOCK_VERIFICATION": Scalar(False),
        "FLY_WINDOW_SIZE": Scalar(0),
    },
    needs=("draft_sampled_ptr", "target_logits_ptr|target_probs_ptr", "cu_num_logits_ptr"),
    warps=1,
)


def run(bench: Bench) -> Outcome:
    """Two requests with two drafts each: ids at the ends of the vocabulary, which must be accepted
    and clean; then a placeholder as the first draft of each."""
    drafts = [0, VOCABULARY - 1, VOCABULARY - 1, 0]
    found, tokens = _sample(bench, drafts)
    if found:
        raise UnclearError(f"ids of the vocabulary: {found[0]['kind']} of {found[0]['tensor']}")
    if [t for row in range(REQUESTS) for t in tokens[row * LOGITS :][:DRAFTS]] != drafts:
        raise UnclearError(f"certain drafts {drafts} came out as {tokens}")
    found, _ = _sample(bench, [PLACEHOLDER, 1, PLACEHOLDER, 1])
    return looked_up(found)


def _sample(bench: Bench, drafts: Sequence[int]) -> tuple[list[Mapping[str, Any]], list[int]]:
    """Launch for both requests: the findings, and the tokens, a row a request."""
    rows = REQUESTS * LOGITS
    given: list[int] = []
    for request in range(REQUESTS):
        given += [0, *drafts[request * DRAFTS :][:DRAFTS]]
    owners = [row // LOGITS for row in range(rows)]
    target = bench.tensor(
        "target_logits", "fp32", [5.0] * (rows * VOCABULARY), Owned(VOCABULARY, owners)
    )
    tokens = bench.tensor("sampled", "i64", [UNSET] * rows)
    found = bench.launch(
        (REQUESTS, 1, 1),
        {
            "sampled": tokens,
            "target_logits": target,
            "draft_sampled": bench.tensor("draft_sampled", "i64", given),
            "cu_num_logits": bench.tensor(
                "cu_num_logits", "i32", [request * LOGITS for request in range(REQUESTS + 1)]
            ),
            "idx_mapping": bench.tensor("idx_mapping", "i32", list(range(REQUESTS))),
        },
        request=list(range(REQUESTS)),
    )
    return found, tokens.values


PROBE = KernelProbe(
    "batch_rejection_kernel",
    "does runner V2's rejection sampling look up the probability of a placeholder?",
    SUBJECT,
    VALUES,
    run,
    "there is no runner V2, or it compares tokens only",
)
