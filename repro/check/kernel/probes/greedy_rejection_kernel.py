"""Whether greedy rejection sampling of runner V1 rejects a draft token that is a placeholder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, Owned, Tensor
from ..subject import Nothing, Pointer, Scalar, Subject
from .greedy import BONUS, COLUMNS, DRAFTS, REQUESTS, TARGETS, UNSET, VALUES
from .greedy import run as ask

SUBJECT = Subject(
    files=("v1/sample/rejection_sampler.py",),
    names=("rejection_greedy_sample_kernel",),
    roles={
        "output_token_ids": Pointer("i32"),
        "cu_num_draft_tokens": Pointer("i32"),
        "draft_token_ids": Pointer("i32"),
        "target_argmax": Pointer("i64"),
        "bonus_token_ids": Pointer("i32", fill=BONUS),
        "is_greedy": Nothing(),  # as where all requests are
        "max_spec_len": Scalar(DRAFTS),
        "uniform_probs": Nothing(),
        "synthetic_conditional_rates": Nothing(),
        "SYNTHETIC_MODE": Scalar(False),
    },
    needs=("draft_token_ids_ptr", "target_argmax_ptr", "cu_num_draft_tokens_ptr"),
)


def run(bench: Bench) -> Outcome:
    return ask(bench, _sample)


def _sample(
    bench: Bench, drafts: Sequence[Sequence[int]]
) -> tuple[list[Mapping[str, Any]], Tensor]:
    flat = [token for kept in drafts for token in kept]
    targets = [t for kept, target in zip(drafts, TARGETS, strict=True) for t in target[: len(kept)]]
    whose = [number for number, kept in enumerate(drafts) for _ in kept]
    tokens = bench.tensor(
        "output_token_ids",
        "i32",
        [UNSET] * (REQUESTS * COLUMNS),
        Owned(COLUMNS, list(range(REQUESTS))),
    )
    found = bench.launch(
        (REQUESTS, 1, 1),
        {
            "output_token_ids": tokens,
            "cu_num_draft_tokens": bench.tensor(
                "cu_num_draft_tokens", "i32", [len(drafts[0]), len(flat)]
            ),
            "draft_token_ids": bench.tensor("draft_token_ids", "i32", flat, Owned(1, whose)),
            "target_argmax": bench.tensor("target_argmax", "i64", targets, Owned(1, whose)),
        },
        request=list(range(REQUESTS)),
        traced=tokens,
    )
    return found, tokens


PROBE = KernelProbe(
    "greedy_rejection_kernel",
    "does greedy rejection sampling accept a draft token that is a placeholder?",
    SUBJECT,
    VALUES,
    run,
    "this build has no rejection sampling in a kernel",
)
