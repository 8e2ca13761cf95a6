"""Whether the kernel of a convolution before the recurrent one checks the accepted count, with
which it finds the tokens of its window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..probe import EVERYBODY, Bench, KernelProbe, Outcome, Owned, UnclearError
from ..subject import Nothing, Pointer, Scalar, Subject

WIDTH = 4  # tokens of a step: as many may have been accepted
KERNEL = 4  # of the convolution
WINDOW = KERNEL - 1 + WIDTH - 1  # tokens of a line of the cache
CHANNELS = 4
LINE = WINDOW * CHANNELS
LINES = [
    EVERYBODY,
    1,
    0,
    1,
]  # of which request; so that request 0 has one of request 1 on each side
OWN = LINES.index(0)
KEPT = WINDOW - WIDTH  # tokens of the window that stay in it after a step

SUBJECT = Subject(
    files=("mamba/ops/causal_conv1d.py",),
    names=("_causal_conv1d_update_kernel",),
    roles={
        "x": Pointer("fp32"),
        "w": Pointer("fp32"),
        "bias": Nothing(),
        "conv_state": Pointer("fp32"),
        "cache_seqlens": Nothing(),
        "conv_state_indices": Pointer("i32"),
        "num_accepted_tokens": Pointer("i32"),
        "query_start_loc": Nothing(),
        "block_idx_last_scheduled_token": Nothing(),
        "initial_state_idx": Nothing(),
        "o": Pointer("fp32"),
        "batch": Scalar(1),
        "dim": Scalar(CHANNELS),
        "seqlen": Scalar(WIDTH),
        "state_len": Scalar(WINDOW),
        "num_cache_lines": Scalar(len(LINES)),
        **dict.fromkeys(("stride_x_seq", "stride_o_seq"), Scalar(WIDTH * CHANNELS)),
        **dict.fromkeys(("stride_x_dim", "stride_o_dim", "stride_conv_state_dim"), Scalar(1)),
        **dict.fromkeys(
            ("stride_x_token", "stride_o_token", "stride_conv_state_tok"), Scalar(CHANNELS)
        ),
        "stride_w_dim": Scalar(KERNEL),
        "stride_w_width": Scalar(1),
        "stride_conv_state_seq": Scalar(LINE),
        "stride_state_indices": Scalar(1),
        "pad_slot_id": Scalar(-1),
        "null_block_id": Scalar(0),
        "KERNEL_WIDTH": Scalar(KERNEL),
        "NP2_STATELEN": Scalar(8),
        "BLOCK_N": Scalar(CHANNELS),
        **dict.fromkeys(
            ("HAS_BIAS", "SILU_ACTIVATION", "IS_VARLEN", "IS_APC_ENABLED", "launch_pdl"),
            Scalar(False),
        ),
        **dict.fromkeys(
            ("IS_CONTINUOUS_BATCHING", "IS_SPEC_DECODING", "USE_PAD_SLOT", "HAS_NULL_BLOCK"),
            Scalar(True),
        ),
    },
    needs=("num_accepted_tokens_ptr", "conv_state_ptr", "conv_state_indices_ptr"),
    warps=1,
)


def run(bench: Bench) -> Outcome:
    """Every count that is right, which must be clean, then 0, and one past the width, and past the
    last line."""
    for count in range(1, WIDTH + 1):
        right, window = _step(bench, count)
        if right:
            one = right[0]
            raise UnclearError(f"count {count} of {WIDTH}: {one['kind']} of {one['tensor']}")
        # the tokens after the last accepted one stay, and those of this step come after them
        wanted = [float(OWN * WINDOW + count + number) for number in range(KEPT)]
        wanted += [float(-1 - number) for number in range(WIDTH)]
        if window != wanted:
            raise UnclearError(f"count {count} of {WIDTH}: the window is {window}, not {wanted}")
    found, said = [], []
    for count in (0, WIDTH + 1, 2 * WINDOW + 1):
        seen = [f for f in _step(bench, count)[0] if f["tensor"] == "conv_state"]
        found += seen
        read = f"{seen[0]['kind']} of element {seen[0]['elements'][0]}" if seen else "no access"
        said.append(f"count {count}: {read}")
    return Outcome("unchecked" if found else "checked", ", ".join(said), found)


def _step(bench: Bench, count: int) -> tuple[list[Mapping[str, Any]], list[float]]:
    """One launch for request 0: the findings, and its window, a number a token. Token n of the
    cache holds n, those of the step -1 and down."""
    contents = [float(at // CHANNELS) for at in range(len(LINES) * LINE)]
    state = bench.tensor("conv_state", "fp32", contents, Owned(LINE, LINES))
    fresh = [float(-1 - at // CHANNELS) for at in range(WIDTH * CHANNELS)]
    found = bench.launch(
        (1, 1, 1),
        {
            "x": bench.tensor("x", "fp32", fresh),
            "conv_state": state,
            "conv_state_indices": bench.tensor("conv_state_indices", "i32", [OWN]),
            "num_accepted_tokens": bench.tensor("num_accepted_tokens", "i32", [count]),
        },
        request=[0],
    )
    return found, state.values[OWN * LINE : (OWN + 1) * LINE : CHANNELS]


PROBE = KernelProbe(
    "conv_update_kernel",
    "does the convolution's kernel check the accepted count before it indexes its window with it?",
    SUBJECT,
    {
        "checked": "yes",
        "unchecked": "no: 0 and counts past the width read outside the request's window",
    },
    run,
    "there is no such kernel",
)
