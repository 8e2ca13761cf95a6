"""Which positions runner V2's update of draft inputs reaches near the end."""

from __future__ import annotations

from ..probe import Bench, KernelProbe, Outcome, Owned, UnclearError
from ..subject import Pointer, Scalar, Subject

LENGTH, HIDDEN, STEPS = 32, 4, 4
EACH = Owned(1, [0, 1])

SUBJECT = Subject(
    files=("v1/worker/gpu/spec_decode/*.py",),
    names=("_update_*inputs_kernel",),
    roles={
        "output_draft_tokens": Pointer("i64"),
        "output_draft_tokens_stride": Scalar(16),
        "next_input_hidden_states": Pointer("fp32", also=("input_hidden_states",)),
        "next_input_hidden_states_stride": Scalar(HIDDEN, also=("input_hidden_states_stride",)),
        "input_ids": Pointer("i32"),
        "positions": Pointer("i64"),
        "sample_src_positions": Pointer("i64"),
        "seq_lens": Pointer("i32"),
        "draft_tokens": Pointer("i64"),
        "current_draft_step": Pointer("i32"),
        "hidden_states": Pointer("fp32", also=("output_hidden_states",)),
        "hidden_states_stride": Scalar(HIDDEN, also=("output_hidden_states_stride",)),
        "hidden_size": Scalar(HIDDEN),
        "max_model_len": Scalar(LENGTH),
        "num_speculative_steps": Scalar(STEPS + 2),
        "BLOCK_SIZE": Scalar(HIDDEN),
        "ADVANCE_DRAFT_POSITIONS": Scalar(True),
    },
    needs=("positions_ptr", "seq_lens_ptr"),
)


def run(bench: Bench) -> Outcome:
    """Four steps from two before the end, in place as the draft loop does; request 1 is far from
    it."""
    positions = bench.tensor("positions", "i64", [LENGTH - 2, 3], EACH)
    lengths = bench.tensor("seq_lens", "i32", [LENGTH - 1, 4], EACH)
    found, seen = [], []
    for step in range(STEPS):
        found += bench.launch(
            (2, 1, 1),
            {"positions": positions, "seq_lens": lengths},
            request=[0, 1],
            step=step,
            traced=positions,
        )
        reached = int(positions.values[0])
        seen.append(reached)
        if reached >= LENGTH:
            said = f"position {reached} of {LENGTH}"
            wrong = bench.wrong_value(positions, 0, LENGTH - 1, said)
            found.append({**wrong, "step": step, "request": 0})
    said = f"{STEPS} steps from {LENGTH - 2} of {LENGTH}: {', '.join(map(str, seen))}"
    said += f", length {lengths.values[0]}"
    if found or max(seen) >= LENGTH or int(lengths.values[0]) > LENGTH:
        return Outcome("past the end", said, found)
    if seen == [LENGTH - 1] * STEPS:
        return Outcome("clamped", said, found)
    raise UnclearError(said)


PROBE = KernelProbe(
    "input_update_kernel",
    "which positions does runner V2's update of draft inputs reach, near the end?",
    SUBJECT,
    {"clamped": "none past the last", "past the end": "positions past the last"},
    run,
    "no such kernel: there is no runner V2, or its update is not found",
)
