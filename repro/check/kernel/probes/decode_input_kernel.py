"""At which position runner V2's first draft step of its loop begins, for a request at the end."""

from __future__ import annotations

from ..probe import Bench, KernelProbe, Outcome, UnclearError
from ..subject import Pointer, Scalar, Subject

LENGTH, HIDDEN, ROWS = 32, 4, 2
DRAFTS = [7, 8]  # the tokens that were drafted before the loop

SUBJECT = Subject(
    files=("v1/worker/gpu/spec_decode/*.py",),
    names=("_prepare_*decode*_kernel", "_prepare_eagle_docode_kernel"),
    roles={
        "draft_tokens": Pointer("i64"),
        "draft_tokens_stride": Scalar(1),
        "output_hidden_states": Pointer("fp32"),
        "output_hidden_states_stride": Scalar(HIDDEN),
        "input_hidden_states": Pointer("fp32"),
        "input_hidden_states_stride": Scalar(HIDDEN),
        "last_token_indices": Pointer("i64"),
        "target_seq_lens": Pointer("i32"),
        "num_rejected": Pointer("i32"),
        "input_ids": Pointer("i32"),
        "positions": Pointer("i64"),
        "sample_src_positions": Pointer("i64"),
        "query_start_loc": Pointer("i32"),
        "seq_lens": Pointer("i32"),
        "hidden_size": Scalar(HIDDEN),
        "max_model_len": Scalar(LENGTH),
        "max_num_reqs": Scalar(ROWS),
        "BLOCK_SIZE": Scalar(8),
        "ADVANCE_DRAFT_POSITIONS": Scalar(True),
    },
    needs=("positions_ptr", "seq_lens_ptr", "target_seq_lens_ptr", "num_rejected_ptr"),
)


def run(bench: Bench) -> Outcome:
    """A request whose last token is at the last position, and one far from it that had a draft
    rejected. The program after them pads."""
    positions = bench.tensor("positions", "i64", [LENGTH - 1, 3])
    lengths = bench.tensor("seq_lens", "i32", [0] * ROWS)
    tokens = bench.tensor("input_ids", "i32", [0] * ROWS)
    found = bench.launch(
        (ROWS + 1, 1, 1),
        {
            "draft_tokens": bench.tensor("draft_tokens", "i64", DRAFTS),
            "target_seq_lens": bench.tensor("target_seq_lens", "i32", [LENGTH, 5]),
            "num_rejected": bench.tensor("num_rejected", "i32", [0, 1]),
            "query_start_loc": bench.tensor("query_start_loc", "i32", [0] * (ROWS + 1)),
            "input_ids": tokens,
            "positions": positions,
            "seq_lens": lengths,
        },
        traced=positions,
    )
    reached, other = positions.values
    said = f"after {LENGTH - 1} of {LENGTH}: position {reached}, length {lengths.values[0]}"
    if (other, lengths.values[1], tokens.values) != (4, 5, DRAFTS):
        raise UnclearError(f"far from the end: position {other}, length {lengths.values[1]}")
    if reached >= LENGTH:
        wrong = bench.wrong_value(positions, 0, LENGTH - 1, f"position {reached} of {LENGTH}")
        found = [*found, {**wrong, "request": 0}]
    if found or lengths.values[0] > LENGTH:
        return Outcome("past the end", said, found)
    if (reached, lengths.values[0]) == (LENGTH - 1, LENGTH):
        return Outcome("clamped", said)
    raise UnclearError(said)


PROBE = KernelProbe(
    "decode_input_kernel",
    "at which position does runner V2's loop over draft steps begin, near the end?",
    SUBJECT,
    {"clamped": "at the last", "past the end": "past the last"},
    run,
    "no such kernel: there is no runner V2, or it is not found",
)
