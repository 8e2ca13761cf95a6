"""Whether the recurrent kernel that is fused for MTP checks the accepted count."""

from __future__ import annotations

from ..probe import KernelProbe
from ..subject import Pointer, Scalar, Subject
from .accepted import ROLES, SIZE, STATE, VALUES, WIDTH, run

SUBJECT = Subject(
    files=("ops/fused_gdn_decode_post_conv_mtp.py",),
    names=("_gdn_mtp*_kernel",),
    helpers=("ops/op.py", "ops/utils.py"),
    roles={
        **ROLES,
        "ssm_state_indices": Pointer("i32", also=("state_indices",)),
        "h0": Pointer("fp32", also=("state",)),
        "mixed_qkv": Pointer("fp32"),
        **dict.fromkeys(("a", "b", "dt_bias", "sum_sq"), Pointer("fp32")),
        "o": Pointer("fp32", also=("out",)),
        "A_log": Pointer("fp32", fill=-200.0),  # so that a state does not decay
        "stride_qkv_row": Scalar(3 * SIZE),
        **dict.fromkeys(("stride_a_row", "stride_b_row"), Scalar(1)),
        "stride_state_slot": Scalar(STATE),
        **dict.fromkeys(("stride_indices_row", "num_indices_per_row"), Scalar(WIDTH)),
    },
    needs=("num_accepted_tokens", "state_indices"),
    warps=1,
)

PROBE = KernelProbe(
    "mtp_recurrent_kernel",
    "does the recurrent kernel fused for MTP check the accepted count before it indexes states?",
    SUBJECT,
    VALUES,
    run,
    "this build has no recurrent kernel that is fused for MTP",
)
