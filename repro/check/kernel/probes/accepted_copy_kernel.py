"""Whether runner V1's copy of recurrent state after a step checks the accepted count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, UnclearError
from ..subject import Scalar
from .state_copy import BATCH, TABLE, Move, launch
from .state_copy_kernel import BLOCK_SIZE
from .state_copy_kernel import SUBJECT as OF_RUNNER_V2

# With one token and two drafts after the first five, all three accepted end a block.
COMPUTED, SCHEDULED, DRAFTS = 5, 3, 2
RUNNING, SHIFT = 1, 2  # column of the running state; of three accepted, the third is the last
WIDTH = DRAFTS + 1

SUBJECT = replace(
    OF_RUNNER_V2,
    roles={
        **OF_RUNNER_V2.roles,
        "HAS_IDX_MAPPING": Scalar(False),
        "PRECOMPUTED_NEW_COMPUTED": Scalar(False),
    },
    needs=("num_draft_tokens_ptr", "num_scheduled_tokens_ptr", "block_table_ptrs_ptr"),
)


def run(bench: Bench) -> Outcome:
    """Counts up to the width, which must be clean, then 0, and one that ends a block more."""
    for count in range(1, WIDTH + 1):
        right, moved = _copy(bench, count)
        if right:
            one = right[0]
            raise UnclearError(f"count {count} of {WIDTH}: {one['kind']} of {one['tensor']}")
        if moved != (count == WIDTH):
            raise UnclearError(f"count {count} of {WIDTH}: the state is {_said(moved)}")
    found, said = [], []
    for count in (0, WIDTH + BLOCK_SIZE):
        seen = [f for f in _copy(bench, count)[0] if f["tensor"] == TABLE]
        found += seen
        read = f"{seen[0]['kind']} at element {seen[0]['elements'][0]}" if seen else "no access"
        said.append(f"count {count} of {WIDTH}: {read}")
    return Outcome("unchecked" if found else "checked", ", ".join(said), found)


def _said(moved: bool) -> str:
    return "copied" if moved else "not copied"


def _copy(bench: Bench, count: int) -> tuple[list[Mapping[str, Any]], bool]:
    """Launch for two requests, of which the first accepted `count` tokens."""
    each = len(BATCH)
    given = {
        "num_accepted_tokens": bench.tensor("num_accepted_tokens", "i32", [count, 1]),
        "mamba_state_idx": bench.tensor("mamba_state_idx", "i32", [RUNNING] * each),
        "num_computed_tokens": bench.tensor("num_computed_tokens", "i32", [COMPUTED] * each),
        "num_scheduled_tokens": bench.tensor("num_scheduled_tokens", "i32", [SCHEDULED] * each),
        "num_draft_tokens": bench.tensor("num_draft_tokens", "i32", [DRAFTS] * each),
    }
    return launch(bench, BATCH, Move(RUNNING + SHIFT, 0), given)


PROBE = KernelProbe(
    "accepted_copy_kernel",
    "does runner V1's copy of recurrent state check the accepted count?",
    SUBJECT,
    {
        "checked": "yes",
        "unchecked": "no: one past the drafts leads outside the request's row",
    },
    run,
    "runner V1 copies recurrent state from the host here",
)
