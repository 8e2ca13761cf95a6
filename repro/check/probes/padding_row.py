"""What runner V2's slot mapping does with a row of the batch that no request has."""

from __future__ import annotations

from typing import Any

from ..probing import runner_v2
from ..probing.lift import lift, parameters
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources
from ..probing.triton_stub import Language, Number, OutOfBoundsError, Pointer, integer_range

FILES = ("v1/worker/gpu/block_table.py",)
KERNEL = "_compute_slot_mappings_kernel"
MAPPING = "idx_mapping"
TOKENS, BLOCK, WIDTH = 2, 4, 4
ROWS = [[7, 9, 0, 0], [5, 6, 0, 0]]
POSITIONS = [3, 4]


class _Launch(Language):
    """The first row of a batch, of which the launch's last program is not one."""

    def num_programs(self, _axis: int = 0) -> Number:
        return Number(2)


def answer(sources: Sources) -> Answer:
    """Run the kernel for a row with a request, which must come out right, and for one without."""
    if (none := runner_v2.missing(sources)) is not None:
        return none
    path, _, node = sources.function(FILES, KERNEL)
    if MAPPING not in parameters(node):
        said = "its rows are those of the batch; a padding row is not launched"
        return Answer("no mapping", path, node.lineno, False, said)
    wanted = [ROWS[1][p // BLOCK] * BLOCK + p % BLOCK for p in POSITIONS]
    if (slots := _slots(path, node, 1)) != wanted:
        raise NotFoundError(f"positions {POSITIONS} of a request get slots {slots}, not {wanted}")
    try:
        slots = _slots(path, node, -1)
    except OutOfBoundsError as error:
        said = f"slot -1: element {error.index} of the block table"
        return Answer("looked up", path, node.lineno, True, said)
    if set(slots) != {-1}:
        raise NotFoundError(f"slot -1: its tokens get {slots}")
    return Answer("guarded", path, node.lineno, True, f"slot -1: its tokens get {slots}")


def _slots(path: str, node: Function, request: int) -> list[int]:
    """Slots of the two tokens of a row that belongs to `request`."""
    table = Pointer([block for row in ROWS for block in row])
    slots: list[int] = [-2] * TOKENS
    known: dict[str, Any] = {
        "num_tokens": TOKENS,
        "max_num_tokens": TOKENS,
        MAPPING: Pointer([request]),
        "query_start_loc": Pointer([0, TOKENS]),
        "pos": Pointer(list(POSITIONS)),
        "block_table_ptrs": Pointer([0]),
        "block_table_strides": Pointer([WIDTH]),
        "block_sizes": Pointer([BLOCK]),
        "kernel_block_sizes": Pointer([BLOCK]),
        "slot_mapping_enabled": Pointer([True]),
        "dcp_sharded": Pointer([False]),
        "slot_mappings_ptr": Pointer(slots),
        "slot_mappings_stride": TOKENS,
        "cp_rank": 0,
        "CP_SIZE": 1,
        "CP_INTERLEAVE": 1,
        "PAD_ID": -1,
        "TRITON_BLOCK_SIZE": TOKENS,
    }
    if missing := [name for name in parameters(node) if name not in known]:
        raise NotFoundError(f"{KERNEL} has a parameter {missing[0]}")
    scope = {"tl": _Launch(), "range": integer_range, "_load_ptr": lambda *_arguments: table}
    lift(node, path, scope)(**{name: known[name] for name in parameters(node)})
    return [int(slot) for slot in slots]


PROBE = Probe(
    "padding_row",
    "does runner V2's slot mapping look up a row of the batch that no request has?",
    (runner_v2.ENVIRONMENT, *FILES),
    {
        "guarded": "no, its tokens are padding",
        "looked up": "yes, before the block table",
        "no mapping": "there is no mapping from rows to requests that could be -1",
        runner_v2.NONE: "there is no runner V2",
    },
    answer,
)
