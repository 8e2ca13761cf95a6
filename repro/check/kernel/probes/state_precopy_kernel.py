"""Which row of a block table runner V2's copy of recurrent state before a step reads."""

from __future__ import annotations

from collections.abc import Sequence

from ..probe import Bench, KernelProbe, Outcome
from ..subject import Pointer, Subject
from .state_copy import FILES, ROLES, SLOTS, Copied, Move, launch
from .state_copy import run as ask

SOURCE, SHIFT, TO = 0, 1, 3  # columns: of the last step's state, of what it accepted, of the new

SUBJECT = Subject(
    files=FILES,
    names=("precopy_mamba*_kernel",),
    roles={**ROLES, "src_col": Pointer("i32"), "token_bias": Pointer("i32")},
    needs=("idx_mapping_ptr", "src_col_ptr", "token_bias_ptr", "block_table_ptrs_ptr"),
)


def run(bench: Bench) -> Outcome:
    """Not late: the engine launches it in the step that gathered the tables."""
    return ask(bench, _copy, late=False)


def _copy(bench: Bench, rows: Sequence[int]) -> Copied:
    given = {
        "src_col": bench.tensor("src_col", "i32", [SOURCE] * SLOTS),
        "token_bias": bench.tensor("token_bias", "i32", [SHIFT] * SLOTS),
        "mamba_state_idx": bench.tensor("mamba_state_idx", "i32", [TO] * SLOTS),
    }
    return launch(bench, rows, Move(SOURCE + SHIFT, TO), given)


PROBE = KernelProbe(
    "state_precopy_kernel",
    "whose blocks does the copy of recurrent state before a step move?",
    SUBJECT,
    {
        "batch": "those that the row of the batch names: right in the step that gathered them",
        "request": "the request's own",
    },
    run,
    "runner V2 does not copy recurrent state before a step here",
)
