"""What the probes of runner V2's copies of recurrent state share: two requests of a batch, and
tables and states that the kernel reaches by addresses, as the engine binds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..probe import Bench, Outcome, Owned, Tensor, UnclearError
from ..subject import Pointer, Role, Scalar

BATCH = [5, 3]  # row of the batch → slot of the request, which is also its number here
SLOTS, COLUMNS = 8, 4
UNIT = 16  # elements of a state block, 4 bytes each
BLOCKS = SLOTS * COLUMNS + 1  # block 0 is nobody's
TABLE, STATE, WINDOW = "block_table", "recurrent_state", "conv_state"
FILES = ("v1/worker/mamba_utils.py",)
ROLES: Mapping[str, Role] = {
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
    "COPY_BLOCK_SIZE": Scalar(128),
    "CONV_STATE_DIM_FIRST": Scalar(False),
    "HAS_IDX_MAPPING": Scalar(True),
    "PRECOMPUTED_NEW_COMPUTED": Scalar(True),
    "TEMPORAL_TILES": Scalar(1),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """What a state block holds. tokens: the width of a convolution's window, 0 for a recurrent
    state; inner: elements of one token, or of the state; rows: of a window whose tokens lie side by
    side in rows of channels."""

    tokens: int = 0
    inner: int = UNIT
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """Where the state of a request must go. source, to: columns of the request's row. to is filled
    with the tokens of `source` from `shift` on."""

    source: int
    to: int
    shift: int = 0


Copied = tuple[list[Mapping[str, Any]], bool]
Copy = Callable[[Bench, Sequence[int]], Copied]


def run(bench: Bench, copy: Copy, late: bool) -> Outcome:
    """With tables by slot: whose row is read. If it is the row of the batch, with tables gathered
    in the order of this batch, which must be clean. late: whether the engine may launch it after
    later steps gathered the tables anew; then that too."""
    by_slot, moved = copy(bench, list(range(SLOTS)))
    rows = sorted({int(f["elements"][0]) // COLUMNS for f in by_slot if f["tensor"] == TABLE})
    if not by_slot:
        if not moved:
            raise UnclearError(f"batch {BATCH}: the state of request {BATCH[0]} is not copied")
        return Outcome("request", f"batch {BATCH}: each request's own row, its own blocks")
    if not set(rows) <= {0, 1}:
        raise UnclearError(f"batch {BATCH}: rows {rows} of the table")
    gathered, moved = copy(bench, BATCH)
    if gathered:
        first = gathered[0]
        raise UnclearError(
            f"tables in the order of the batch: {first['kind']} of {first['tensor']}"
        )
    if not moved:
        raise UnclearError(f"batch {BATCH}: the state of request {BATCH[0]} is not copied")
    said = f"batch {BATCH}: rows 0 and 1, whatever the requests are"
    if not late:
        return Outcome("batch", f"{said}; each its own blocks where they were gathered for it")
    found, _ = copy(bench, BATCH[::-1])
    said += (
        f"; after a later step gathered {BATCH[::-1]}, request {BATCH[0]} moves blocks of request "
        f"{BATCH[1]}"
    )
    if not found:
        raise UnclearError(said + " was expected, and not seen")
    # the wrong row is what leads to the wrong blocks
    return Outcome("batch", said, sorted(found, key=lambda one: one["tensor"] != TABLE))


def launch(
    bench: Bench,
    rows: Sequence[int],
    move: Move,
    given: Mapping[str, Tensor],
    layout: Layout = Layout(),
) -> Copied:
    """Launch once: the findings, and whether the first request's state went where it must. rows:
    of the block table, the slot whose blocks each one names; given: what decides the move."""
    names = [1 + slot * COLUMNS + column for slot in rows for column in range(COLUMNS)]
    table = bench.tensor(TABLE, "i32", names, Owned(COLUMNS, list(rows)))
    owners = [-1, *(slot for slot in range(SLOTS) for _ in range(COLUMNS))]
    before = [float(number) for number in range(BLOCKS * UNIT)]
    name = WINDOW if layout.tokens else STATE
    state = bench.tensor(name, "fp32", before, Owned(UNIT, owners))
    in_rows = layout.rows > 0
    found = bench.launch(
        (len(BATCH), 1, 1),
        {
            "block_table_ptrs": bench.addresses("block_table_ptrs", [table]),
            "state_base_addrs": bench.addresses("state_base_addrs", [state]),
            "state_block_strides": bench.tensor("state_block_strides", "i64", [4 * UNIT]),
            "state_elem_sizes": bench.tensor("state_elem_sizes", "i32", [4]),
            "state_inner_sizes": bench.tensor("state_inner_sizes", "i64", [layout.inner]),
            "state_conv_widths": bench.tensor("state_conv_widths", "i32", [layout.tokens]),
            "state_group_indices": bench.tensor("state_group_indices", "i32", [0]),
            "state_dim_row_count": bench.tensor("state_dim_row_count", "i32", [layout.rows]),
            "state_dim_row_stride": bench.tensor(
                "state_dim_row_stride", "i64", [4 * layout.tokens if in_rows else 0]
            ),
            "idx_mapping": bench.tensor("idx_mapping", "i32", BATCH),
            **given,
        },
        request=BATCH,
    )
    return found, _moved(before, state.values, move, layout)


def _moved(before: Sequence[float], after: Sequence[float], move: Move, layout: Layout) -> bool:
    """Whether the first request's block holds what it must, and the rest of it what it held."""
    first = 1 + BATCH[0] * COLUMNS
    source = before[(first + move.source) * UNIT :][:UNIT]
    wanted = list(before[(first + move.to) * UNIT :][:UNIT])
    for token in range((layout.tokens or 1) - move.shift):
        if layout.rows:
            for row in range(layout.rows):
                at = row * layout.tokens + token
                wanted[at] = source[at + move.shift]
        else:
            at = token * layout.inner
            start = at + move.shift * layout.inner
            wanted[at : at + layout.inner] = source[start : start + layout.inner]
    return list(after[(first + move.to) * UNIT :][:UNIT]) == wanted
