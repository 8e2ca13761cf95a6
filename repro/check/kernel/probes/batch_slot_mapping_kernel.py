"""Whether runner V2's slot mapping stays in the request's row of the block table.

The kernel gets the addresses of the block tables from a tensor of integers, one a cache group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, Owned
from ..subject import Pointer, Scalar, Subject
from .slot_mapping_kernel import BLOCK, COLUMNS, FIRST, LENGTH, VALUES, control, outcome

TOKENS, MOST_TOKENS = 2, 8

SUBJECT = Subject(
    files=("v1/worker/gpu/block_table.py",),
    names=("_compute_slot_mappings_kernel",),
    helpers=("v1/worker/gpu/buffer_utils.py", "v1/worker/gpu/cp_utils.py"),
    roles={
        "num_tokens": Scalar(TOKENS),
        "max_num_tokens": Scalar(MOST_TOKENS),
        "idx_mapping": Pointer("i32"),
        "query_start_loc": Pointer("i32", also=("cu_num_tokens",)),
        "pos": Pointer("i64"),
        "block_table_ptrs": Pointer("u64"),
        "block_table_strides": Pointer("i64"),
        "block_sizes": Pointer("i32", also=("page_sizes",)),
        "kernel_block_sizes": Pointer("i32"),
        "slot_mapping_enabled": Pointer("i1"),
        "dcp_sharded": Pointer("i1"),
        "slot_mappings": Pointer("i64"),
        "slot_mappings_stride": Scalar(MOST_TOKENS),
        "cp_rank": Scalar(0),
        "CP_SIZE": Scalar(1),
        "CP_INTERLEAVE": Scalar(1),
        "PAD_ID": Scalar(-1),
        "TRITON_BLOCK_SIZE": Scalar(4, also=("BLOCK_SIZE",)),
    },
    needs=("pos", "block_table_ptrs", "slot_mappings_ptr"),
)


def run(bench: Bench) -> Outcome:
    """One request with its last two positions, then with one past its row; the row behind it is
    another request's."""
    in_row(bench)
    found, _ = mapped(bench, [LENGTH - 1, LENGTH], 0)
    return outcome(found, LENGTH)


def in_row(bench: Bench) -> None:
    """Refuse a kernel that does not map the last two positions of a row as it must."""
    last = (FIRST + COLUMNS) * BLOCK - 1
    wanted = [last - 1, last, *[-1] * (MOST_TOKENS - TOKENS)]
    control(*mapped(bench, [LENGTH - 2, LENGTH - 1], 0), wanted)


def mapped(
    bench: Bench, positions: Sequence[int], slot: int
) -> tuple[list[Mapping[str, Any]], list[int]]:
    """Launch for one request that lives in `slot`: the findings, and the slots of its tokens."""
    table = bench.tensor(
        "block_table", "i32", list(range(FIRST, FIRST + 2 * COLUMNS)), Owned(COLUMNS, [0, 1])
    )
    mappings = bench.tensor("slot_mappings", "i64", [0] * MOST_TOKENS)
    found = bench.launch(
        (1, 2, 1),  # one cache group; one request, and the program that pads
        {
            "idx_mapping": bench.tensor("idx_mapping", "i32", [slot]),
            "query_start_loc": bench.tensor("query_start_loc", "i32", [0, TOKENS]),
            "pos": bench.tensor("pos", "i64", positions),
            "block_table_ptrs": bench.addresses("block_table_ptrs", [table]),
            "block_table_strides": bench.tensor("block_table_strides", "i64", [COLUMNS]),
            "block_sizes": bench.tensor("block_sizes", "i32", [BLOCK]),
            "kernel_block_sizes": bench.tensor("kernel_block_sizes", "i32", [BLOCK]),
            "slot_mapping_enabled": bench.tensor("slot_mapping_enabled", "i1", [1]),
            "dcp_sharded": bench.tensor("dcp_sharded", "i1", [0]),
            "slot_mappings": mappings,
        },
        request=[0],
    )
    return found, mappings.values


PROBE = KernelProbe(
    "batch_slot_mapping_kernel",
    "does runner V2's slot mapping stay in the request's row of the block table?",
    SUBJECT,
    VALUES,
    run,
    "there is no runner V2, or its slot mapping is not found",
)
