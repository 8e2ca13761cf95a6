"""Which row of a block table runner V2's copy of recurrent state reads, and whose blocks it moves.

The kernel gets addresses from tensors of integers, as the engine binds them: of each group's block
table, and of each state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, Owned, UnclearError
from ..subject import Pointer, Scalar, Subject

BATCH = [5, 3]  # row of the batch → slot of the request, which is also its number here
SLOTS, COLUMNS = 8, 4
UNIT = 16  # elements of a state block, 4 bytes each
BLOCKS = SLOTS * COLUMNS + 1  # block 0 is nobody's
ACCEPTED, COMPUTED, BLOCK_SIZE = 3, 9, 8  # so that a block boundary was crossed by accepted drafts
RUNNING = 1  # column of the running state

SUBJECT = Subject(
    files=("v1/worker/mamba_utils.py",),
    names=("postprocess_mamba*_kernel",),
    helpers=("vllm/triton_utils/*.py",),
    roles={
        "num_accepted_tokens": Pointer("i32"),
        "mamba_state_idx": Pointer("i32"),
        "num_scheduled_tokens": Pointer("i32"),
        "num_computed_tokens": Pointer("i32"),
        "num_draft_tokens": Pointer("i32"),
        "block_table_ptrs": Pointer("i64"),
        "block_table_stride_req": Scalar(COLUMNS, "i64"),
        "state_base_addrs": Pointer("i64"),
        "state_block_strides": Pointer("i64"),
        "state_elem_sizes": Pointer("i32"),
        "state_inner_sizes": Pointer("i64"),
        "state_conv_widths": Pointer("i32"),
        "state_group_indices": Pointer("i32"),
        "state_dim_row_count": Pointer("i32"),
        "state_dim_row_stride": Pointer("i64"),
        "num_accepted_tokens_out": Pointer("i32"),
        "idx_mapping": Pointer("i32"),
        "num_reqs": Scalar(len(BATCH)),
        "block_size": Scalar(BLOCK_SIZE),
        "COPY_BLOCK_SIZE": Scalar(128),
        "CONV_STATE_DIM_FIRST": Scalar(False),
        "HAS_IDX_MAPPING": Scalar(True),
        "PRECOMPUTED_NEW_COMPUTED": Scalar(True),
        "TEMPORAL_TILES": Scalar(1),
    },
    needs=(
        "HAS_IDX_MAPPING",
        "PRECOMPUTED_NEW_COMPUTED",
        "idx_mapping_ptr",
        "block_table_ptrs_ptr",
    ),
)


def run(bench: Bench) -> Outcome:
    """With tables by slot: whose row is read. If it is the row of the batch, with tables gathered
    in the order of this batch, which must be clean, and in that of a later one."""
    by_slot, moved = _copy(bench, list(range(SLOTS)))
    rows = sorted({int(f["elements"][0]) // COLUMNS for f in by_slot if f["tensor"] == TABLE})
    if not by_slot:
        if not moved:
            raise UnclearError(f"batch {BATCH}: the state of request {BATCH[0]} is not copied")
        return Outcome("request", f"batch {BATCH}: each request's own row, its own blocks")
    if not set(rows) <= {0, 1}:
        raise UnclearError(f"batch {BATCH}: rows {rows} of the table")
    gathered, _ = _copy(bench, BATCH)
    if gathered:
        first = gathered[0]
        raise UnclearError(
            f"tables in the order of the batch: {first['kind']} of {first['tensor']}"
        )
    late, _ = _copy(bench, BATCH[::-1])
    said = (
        f"batch {BATCH}: rows 0 and 1, whatever the requests are; after a later step gathered "
        f"{BATCH[::-1]}, request {BATCH[0]} moves blocks of request {BATCH[1]}"
    )
    if not late:
        raise UnclearError(said + " was expected, and not seen")
    # the wrong row is what leads to the wrong blocks
    return Outcome("batch", said, sorted(late, key=lambda one: one["tensor"] != TABLE))


TABLE, STATE = "block_table", "recurrent_state"


def _copy(bench: Bench, rows: Sequence[int]) -> tuple[list[Mapping[str, Any]], bool]:
    """Launch once: the findings, and whether the first request's state went where it must: from
    the column of the last accepted token to the first. rows: of the block table, the slot whose
    blocks each one names."""
    names = [1 + slot * COLUMNS + column for slot in rows for column in range(COLUMNS)]
    table = bench.tensor(TABLE, "i32", names, Owned(COLUMNS, list(rows)))
    owners = [-1, *(slot for slot in range(SLOTS) for _ in range(COLUMNS))]
    contents = [float(block) for block in range(BLOCKS) for _ in range(UNIT)]
    state = bench.tensor(STATE, "fp32", contents, Owned(UNIT, owners))
    each = [0] * SLOTS
    found = bench.launch(
        (len(BATCH), 1, 1),
        {
            "num_accepted_tokens": bench.tensor("num_accepted_tokens", "i32", [ACCEPTED] * SLOTS),
            "mamba_state_idx": bench.tensor("mamba_state_idx", "i32", [RUNNING] * SLOTS),
            "num_computed_tokens": bench.tensor("num_computed_tokens", "i32", [COMPUTED] * SLOTS),
            "num_accepted_tokens_out": bench.tensor("num_accepted_tokens_out", "i32", each),
            "block_table_ptrs": bench.addresses("block_table_ptrs", [table]),
            "state_base_addrs": bench.addresses("state_base_addrs", [state]),
            "state_block_strides": bench.tensor("state_block_strides", "i64", [4 * UNIT]),
            "state_elem_sizes": bench.tensor("state_elem_sizes", "i32", [4]),
            "state_inner_sizes": bench.tensor("state_inner_sizes", "i64", [UNIT]),
            "state_conv_widths": bench.tensor("state_conv_widths", "i32", [0]),
            "state_group_indices": bench.tensor("state_group_indices", "i32", [0]),
            "idx_mapping": bench.tensor("idx_mapping", "i32", BATCH),
        },
        request=BATCH,
    )
    first = 1 + BATCH[0] * COLUMNS
    # the token at the boundary is the second of three accepted, so one column on
    wanted = [float(first + RUNNING + 1)] * UNIT
    return found, state.values[first * UNIT : (first + 1) * UNIT] == wanted


PROBE = KernelProbe(
    "state_copy_kernel",
    "whose blocks does the copy of recurrent state move?",
    SUBJECT,
    {
        "batch": "those that the row of the batch names, after later steps gathered anew too",
        "request": "the request's own",
    },
    run,
    "runner V2 does not copy recurrent state by a mapping here; the source depth answers",
)
