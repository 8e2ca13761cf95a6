"""Where runner V1's draft loop writes once a position is past the last one."""

from __future__ import annotations

import ast

from ..probing.lift import lift, parameters
from ..probing.probe import Answer, NotFoundError, Probe, Sources, assigned, names
from ..probing.triton_stub import Language, OutOfBoundsError, Pointer, integer_range

KERNELS = ("v1/spec_decode/utils.py",)
LOOPS = ("v1/spec_decode/llm_base_proposer.py", "v1/spec_decode/eagle.py")
KERNEL = "eagle_step_slot_mapping_metadata_kernel"
LENGTH, BLOCK, PAD, FIRST_BLOCK = 32, 8, -1, 10


def answer(sources: Sources) -> Answer:
    """The kernel where there is one, four steps from two before the end, its position fed back;
    else the statements of the loop."""
    for path in sources.paths(*KERNELS):
        node = sources.functions(path).get(KERNEL)
        if node is not None:
            value, said = _slots(lift(node, path, _scope()), parameters(node))
            return Answer(value, path, node.lineno, True, said)
    for path in sources.paths(*LOOPS):
        for name, node in sources.functions(path).items():
            if name.endswith(".propose"):
                for mask in assigned(node, "exceeds_max_model_len"):
                    return _masked(path, node, mask)
    raise NotFoundError(f"neither {KERNEL} nor a mask exceeds_max_model_len")


def _scope() -> dict[str, object]:
    return {"tl": Language(), "range": integer_range}


def _slots(kernel: object, arguments: list[str]) -> tuple[str, str]:
    blocks = LENGTH // BLOCK
    position, clamped, length, slot = [LENGTH - 2], [0], [LENGTH - 1], [0]
    table = list(range(FIRST_BLOCK, FIRST_BLOCK + blocks))
    given = {
        "positions_ptr": Pointer(position),
        "block_table_ptr": Pointer(table),
        "block_table_stride": blocks,
        "seq_lens_ptr": Pointer(length),
        "out_clamped_positions_ptr": Pointer(clamped),
        "out_slot_mapping_ptr": Pointer(slot),
        "block_size": BLOCK,
        "max_model_len": LENGTH,
        "n_blocks_per_req": blocks,
        "PAD_ID": PAD,
        "batch_size": 1,
    }
    if set(arguments) != set(given):
        raise NotFoundError(f"{KERNEL} has other parameters: {', '.join(arguments)}")
    seen: list[str] = []
    slots: list[int] = []
    for _ in range(4):
        try:
            kernel(**given)  # type: ignore[operator]
        except OutOfBoundsError as error:
            return "past the end", f"{', '.join(seen)}, then {error}"
        slots.append(slot[0])
        block, inside = divmod(slot[0], BLOCK)
        seen.append("padding" if slot[0] == PAD else f"block {block - FIRST_BLOCK} + {inside}")
        position[0] = clamped[0]
    said = f"four steps from position {LENGTH - 2} of {LENGTH}: {', '.join(seen)}"
    last = (FIRST_BLOCK + blocks) * BLOCK - 1
    if slots == [last, PAD, PAD, PAD]:
        return "masked", said
    if slots[:2] == [last, PAD] and any(s != PAD for s in slots[2:]):
        return "starts again", said
    return "past the end", said


def _masked(path: str, node: ast.AST, mask: ast.Assign) -> Answer:
    """Inline code masks for good if it does not take the clamped positions for its own."""
    resets = any("clamped_positions" in names(a.value) for a in assigned(node, "positions"))
    value = "starts again" if resets else "masked"
    return Answer(value, path, mask.lineno, False, ast.unparse(mask))


PROBE = Probe(
    "v1_draft_position",
    "where does runner V1 write drafts once a position is past the end?",
    (*KERNELS, *LOOPS),
    {
        "masked": "nowhere: the slot stays padding",
        "starts again": "after one masked step into the request's own first block",
        "past the end": "past the end",
    },
    answer,
)
