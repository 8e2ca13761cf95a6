"""Whether runner V1's slot mapping stays in the request's row of the block table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..probe import Bench, KernelProbe, Outcome, Owned, UnclearError
from ..subject import Pointer, Scalar, Subject

COLUMNS, BLOCK, FIRST = 4, 8, 10  # the first row has blocks 10 to 13
LENGTH = COLUMNS * BLOCK
TOKENS, MOST_TOKENS = 4, 8
VALUES = {
    "checked": "it does not read past the row",
    "unchecked": "a position past the row is looked up in the next request's row",
}

SUBJECT = Subject(
    files=("v1/worker/block_table.py",),
    names=("_compute_slot_mapping_kernel", "kernel"),
    roles={
        "num_tokens": Scalar(TOKENS),
        "max_num_tokens": Scalar(MOST_TOKENS),
        "query_start_loc": Pointer("i32"),
        "positions": Pointer("i64"),
        "block_table": Pointer("i32"),
        "block_table_stride": Scalar(COLUMNS),
        "block_size": Scalar(BLOCK),
        "slot_mapping": Pointer("i64"),
        "KV_CACHE_BLOCK_SIZE": Scalar(BLOCK),
        "BLOCKS_PER_KV_BLOCK": Scalar(1),
        "TOTAL_CP_WORLD_SIZE": Scalar(1),
        "TOTAL_CP_RANK": Scalar(0),
        "CP_KV_CACHE_INTERLEAVE_SIZE": Scalar(1),
        "PAD_ID": Scalar(-1),
        "BLOCK_SIZE": Scalar(4),
    },
    needs=("positions_ptr", "block_table_ptr", "slot_mapping_ptr"),
)


def run(bench: Bench) -> Outcome:
    """Two requests, the first with its last two positions, then with one past its row."""
    last = (FIRST + COLUMNS) * BLOCK - 1
    following = (FIRST + COLUMNS) * BLOCK
    control(
        *_map(bench, [LENGTH - 2, LENGTH - 1, 0, 1]),
        [last - 1, last, following, following + 1, *[-1] * (MOST_TOKENS - TOKENS)],
    )
    found, _ = _map(bench, [LENGTH - 1, LENGTH, 0, 1])
    return outcome(found, LENGTH)


def control(found: Sequence[Mapping[str, Any]], slots: Sequence[int], wanted: list[int]) -> None:
    """Refuse a kernel that does not map positions within the row as it must."""
    if found:
        raise UnclearError(f"positions in the row: {found[0]['kind']} of {found[0]['tensor']}")
    if list(slots) != wanted:
        raise UnclearError(f"positions in the row: slots {list(slots)}, not {wanted}")


def outcome(found: Sequence[Mapping[str, Any]], position: int) -> Outcome:
    """What a position past the row led to."""
    said = f"position {position} of a row for {LENGTH}: "
    reads = [f for f in found if f["tensor"] == "block_table"]
    if reads:
        one = reads[0]
        said += f"{one['kind']} of element {one['elements'][0]} of the block table"
        return Outcome("unchecked", said, found)
    if found:
        raise UnclearError(f"{said}{found[0]['kind']} of {found[0]['tensor']}")
    return Outcome("checked", f"{said}no access outside the row")


def _map(bench: Bench, positions: Sequence[int]) -> tuple[list[Mapping[str, Any]], list[int]]:
    table = bench.tensor(
        "block_table", "i32", list(range(FIRST, FIRST + 2 * COLUMNS)), Owned(COLUMNS, [0, 1])
    )
    mapping = bench.tensor("slot_mapping", "i64", [0] * MOST_TOKENS)
    found = bench.launch(
        (3, 1, 1),  # two requests, and the program that pads
        {
            "query_start_loc": bench.tensor("query_start_loc", "i32", [0, 2, TOKENS]),
            "positions": bench.tensor("positions", "i64", positions),
            "block_table": table,
            "slot_mapping": mapping,
        },
        request=[0, 1, 1],
    )
    return found, mapping.values


PROBE = KernelProbe(
    "slot_mapping_kernel",
    "does runner V1's slot mapping stay in the request's row of the block table?",
    SUBJECT,
    VALUES,
    run,
    "the slot mapping is no Triton kernel here",
)
