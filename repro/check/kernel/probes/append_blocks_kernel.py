"""What runner V2's first kernel for block tables does with more ids than a row holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, Owned, UnclearError
from ..subject import Pointer, Scalar, Subject

COLUMNS, MOST = 4, 8

SUBJECT = Subject(
    files=("v1/worker/gpu/block_table.py",),
    names=("_append_block_ids_kernel",),
    roles={
        "req_indices": Pointer("i32"),
        "cu_num_new_blocks": Pointer("i32"),
        "cu_num_new_blocks_stride": Scalar(2),
        "new_block_ids": Pointer("i32"),
        "new_block_ids_stride": Scalar(MOST),
        "overwrite": Pointer("i1"),
        "block_table_strides": Pointer("i64"),
        "block_table_ptrs": Pointer("u64"),
        "num_blocks": Pointer("i32"),
        "num_blocks_stride": Scalar(2),
        "BLOCK_SIZE": Scalar(MOST),
    },
    needs=("new_block_ids_ptr", "block_table_ptrs"),
)


def run(bench: Bench) -> Outcome:
    """As many ids as fit, which must be clean, then two more."""
    found, row = _append(bench, COLUMNS)
    if found or row != list(range(1, COLUMNS + 1)):
        raise UnclearError(f"{COLUMNS} ids fit, and the row is {row} with {len(found)} findings")
    found, _ = _append(bench, COLUMNS + 2)
    if not found:
        return Outcome("checked", f"{COLUMNS + 2} ids in a row for {COLUMNS}: nothing is written")
    first, last = found[0]["elements"]
    said = f"{COLUMNS + 2} ids in a row for {COLUMNS}: elements {first} to {last} are the next row"
    return Outcome("silent", said, found)


def _append(bench: Bench, ids: int) -> tuple[list[Mapping[str, Any]], list[int]]:
    """Launch for request 0: the findings, and its row afterwards."""
    table = bench.tensor("block_table", "i32", [0] * (2 * COLUMNS), Owned(COLUMNS, [0, 1]))
    found = bench.launch(
        (1, 1, 1),
        {
            "req_indices": bench.tensor("req_indices", "i32", [0]),
            "cu_num_new_blocks": bench.tensor("cu_num_new_blocks", "i32", [0, ids]),
            "new_block_ids": bench.tensor("new_block_ids", "i32", list(range(1, MOST + 1))),
            "overwrite": bench.tensor("overwrite", "i1", [1]),
            "block_table_strides": bench.tensor("block_table_strides", "i64", [COLUMNS]),
            "block_table_ptrs": bench.addresses("block_table_ptrs", [table]),
            "num_blocks": bench.tensor("num_blocks", "i32", [0, 0]),
        },
        request=[0],
    )
    return found, table.values[:COLUMNS]


PROBE = KernelProbe(
    "append_blocks_kernel",
    "what does runner V2's kernel do with more block ids than a row holds?",
    SUBJECT,
    {"checked": "it does not write past the row", "silent": "it writes them into the next row"},
    run,
    "host code appends block ids here, no kernel; the source depth answers",
)
