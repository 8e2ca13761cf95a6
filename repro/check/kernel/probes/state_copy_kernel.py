"""Which row of a block table runner V2's copy of recurrent state after a step reads, and whose
blocks it moves. In pipeline stages it is launched steps later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..probe import Bench, KernelProbe, Outcome, Tensor
from ..subject import Scalar, Subject
from .state_copy import FILES, ROLES, SLOTS, Copied, Move, launch
from .state_copy import run as ask

ACCEPTED, COMPUTED, BLOCK_SIZE = 3, 9, 8  # so that a block boundary was crossed by accepted drafts
RUNNING = 1  # column of the running state
# the token at the boundary is the second of three accepted, so one column on
SHIFT = 1

SUBJECT = Subject(
    files=FILES,
    names=("postprocess_mamba*_kernel",),
    roles={**ROLES, "block_size": Scalar(BLOCK_SIZE)},
    needs=(
        "HAS_IDX_MAPPING",
        "PRECOMPUTED_NEW_COMPUTED",
        "idx_mapping_ptr",
        "block_table_ptrs_ptr",
    ),
)
VALUES = {
    "batch": "those that the row of the batch names, after later steps gathered anew too",
    "request": "the request's own",
}
ABSENT = "runner V2 does not copy recurrent state by a mapping here; the source depth answers"


def decided(bench: Bench, running: int = RUNNING) -> Mapping[str, Tensor]:
    """What the kernel decides the move with: each request accepted so many tokens that the
    boundary of a block is among them. running: the column of the running state."""
    return {
        "num_accepted_tokens": bench.tensor("num_accepted_tokens", "i32", [ACCEPTED] * SLOTS),
        "mamba_state_idx": bench.tensor("mamba_state_idx", "i32", [running] * SLOTS),
        "num_computed_tokens": bench.tensor("num_computed_tokens", "i32", [COMPUTED] * SLOTS),
        "num_accepted_tokens_out": bench.tensor("num_accepted_tokens_out", "i32", [0] * SLOTS),
    }


def run(bench: Bench) -> Outcome:
    return ask(bench, _copy, late=True)


def _copy(bench: Bench, rows: Sequence[int]) -> Copied:
    return launch(bench, rows, Move(RUNNING + SHIFT, 0), decided(bench))


PROBE = KernelProbe(
    "state_copy_kernel",
    "whose blocks does the copy of recurrent state move?",
    SUBJECT,
    VALUES,
    run,
    ABSENT,
)
