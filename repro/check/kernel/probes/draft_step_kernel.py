"""Where runner V1's fused draft step writes once a position is past the last one."""

from __future__ import annotations

from ..probe import Bench, KernelProbe, Outcome, Owned, UnclearError
from ..subject import Pointer, Scalar, Subject

LENGTH, BLOCK, PAD = 64, 16, -1
BLOCKS = LENGTH // BLOCK
FIRST_BLOCK = 10  # request 0 has blocks 10 to 13, request 1 those behind
LAST = (FIRST_BLOCK + BLOCKS) * BLOCK - 1  # the slot of request 0's last position
STEPS, FAR = 4, 3  # FAR: position of request 1, far from the end

SUBJECT = Subject(
    files=("v1/spec_decode/utils.py",),
    names=("eagle_step_slot_mapping_metadata_kernel", "*_step_slot_mapping*_kernel"),
    roles={
        "positions": Pointer("i64"),
        "block_table": Pointer("i32"),
        "block_table_stride": Scalar(BLOCKS),
        "seq_lens": Pointer("i32"),
        "out_clamped_positions": Pointer("i64"),
        "out_slot_mapping": Pointer("i64"),
        "block_size": Scalar(BLOCK),
        "max_model_len": Scalar(LENGTH),
        "n_blocks_per_req": Scalar(BLOCKS),
        "PAD_ID": Scalar(PAD),
        "batch_size": Scalar(2),
    },
    needs=("positions_ptr", "out_clamped_positions_ptr", "out_slot_mapping_ptr"),
)


def run(bench: Bench) -> Outcome:
    """Four steps from two before the end, the positions fed back as the draft loop does. Request 1
    is far from the end: it, and the first step, must be mapped as they must."""
    table = bench.tensor(
        "block_table", "i32", list(range(FIRST_BLOCK, FIRST_BLOCK + 2 * BLOCKS)),
        Owned(BLOCKS, [0, 1]),
    )  # fmt: skip
    positions = [LENGTH - 2, FAR]
    lengths = bench.tensor("seq_lens", "i32", [LENGTH - 1, FAR + 1], Owned(1, [0, 1]))
    found, seen, slots = [], [], []
    for step in range(STEPS):
        clamped = bench.tensor("out_clamped_positions", "i64", [0, 0], Owned(1, [0, 1]))
        mapping = bench.tensor("out_slot_mapping", "i64", [7, 7], Owned(1, [0, 1]))
        found += bench.launch(
            (2, 1, 1),
            {
                "positions": bench.tensor("positions", "i64", positions, Owned(1, [0, 1])),
                "block_table": table,
                "seq_lens": lengths,
                "out_clamped_positions": clamped,
                "out_slot_mapping": mapping,
            },
            request=[0, 1],
            step=step,
            traced=mapping,
        )
        slot, other = map(int, mapping.values)
        following = (FIRST_BLOCK + BLOCKS) * BLOCK + FAR + 1 + step
        if other != following or (step == 0 and slot != LAST):
            raise UnclearError(f"step {step}: slots {slot} and {other} of positions in range")
        block, inside = divmod(slot, BLOCK)
        past = LENGTH - 2 + step + 1 >= LENGTH
        if past and slot != PAD:
            where = f"block {block - FIRST_BLOCK} of the request itself, slot {inside}"
            found.append({**bench.wrong_value(mapping, 0, PAD, where), "step": step, "request": 0})
        seen.append("padding" if slot == PAD else f"its block {block - FIRST_BLOCK} + {inside}")
        slots.append(slot)
        positions = [int(p) for p in clamped.values]
    said = f"{STEPS} steps from position {LENGTH - 2} of {LENGTH}: {', '.join(seen)}"
    own = range(FIRST_BLOCK * BLOCK, LAST + 1)
    outside = any(one["kind"] != "wrong_value" for one in found)
    if slots == [LAST, PAD, PAD, PAD] and not outside:
        return Outcome("masked", said, found)
    if slots[1] == PAD and not outside and all(s == PAD or s in own for s in slots):
        return Outcome("starts again", said, found)
    return Outcome("past the end", said, found)


PROBE = KernelProbe(
    "draft_step_kernel",
    "where does runner V1's draft step write once a position is past the end?",
    SUBJECT,
    {
        "masked": "nowhere: the slot stays padding",
        "starts again": "after one masked step into the request's own first block",
        "past the end": "past the end",
    },
    run,
    "the draft step is inline code here, no kernel; the source depth answers",
)
