"""Whether runner V2's greedy rejection sampling rejects a draft token that is a placeholder.

A kernel of its own up to 0.20.2, the strict one; then the kernel that samples by probability, for a
request of temperature 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, Owned, Tensor
from ..subject import Pointer, Scalar
from .batch_rejection_kernel import SUBJECT as BY_PROBABILITY
from .greedy import BONUS, COLUMNS, REQUESTS, TARGETS, UNSET, VALUES
from .greedy import run as ask

SUBJECT = replace(
    BY_PROBABILITY,
    files=("v1/worker/gpu/spec_decode/rejection_sample.py", *BY_PROBABILITY.files[::-1]),
    names=("_strict_rejection_sample_kernel", "_rejection_sample_kernel", *BY_PROBABILITY.names),
    roles={
        **BY_PROBABILITY.roles,
        "sampled_stride": Scalar(COLUMNS),
        "temp": Pointer("fp32", fill=0.0),
        # of the strict kernel
        "num_sampled": Pointer("i32"),
        "target_sampled": Pointer("i64"),
        "input_ids": Pointer("i32"),
    },
    needs=(
        "target_sampled_ptr|target_local_argmax_ptr",
        "input_ids_ptr|draft_sampled_ptr",
        "cu_num_logits_ptr",
    ),
)


def run(bench: Bench) -> Outcome:
    return ask(bench, _sample)


def _sample(
    bench: Bench, drafts: Sequence[Sequence[int]]
) -> tuple[list[Mapping[str, Any]], Tensor]:
    given: list[int] = []
    target: list[int] = []
    whose: list[int] = []
    for number, kept in enumerate(drafts):
        given += [0, *kept]
        target += [*TARGETS[number][: len(kept)], BONUS]
        whose += [number] * (len(kept) + 1)
    ends = [0, *accumulate(len(kept) + 1 for kept in drafts)]
    tokens = bench.tensor(
        "sampled", "i64", [UNSET] * (REQUESTS * COLUMNS), Owned(COLUMNS, list(range(REQUESTS)))
    )
    found = bench.launch(
        (REQUESTS, 1, 1),
        {
            "sampled": tokens,
            "cu_num_logits": bench.tensor("cu_num_logits", "i32", ends),
            "idx_mapping": bench.tensor("idx_mapping", "i32", list(range(REQUESTS))),
            "target_sampled": bench.tensor("target_sampled", "i64", target, Owned(1, whose)),
            "input_ids": bench.tensor("input_ids", "i32", given, Owned(1, whose)),
            "target_local_argmax": bench.tensor(
                "target_local_argmax", "i64", target, Owned(1, whose)
            ),
            "draft_sampled": bench.tensor("draft_sampled", "i64", given, Owned(1, whose)),
        },
        request=list(range(REQUESTS)),
        traced=tokens,
    )
    return found, tokens


PROBE = KernelProbe(
    "batch_greedy_kernel",
    "does runner V2's greedy rejection sampling accept a draft token that is a placeholder?",
    SUBJECT,
    VALUES,
    run,
    "there is no runner V2",
)
