"""Whether the recurrent kernel that gates by itself checks the accepted count."""

from __future__ import annotations

from ..probe import KernelProbe
from ..subject import Pointer, Scalar, Subject
from .accepted import ROLES, VALUES, run

SUBJECT = Subject(
    files=("ops/fused_sigmoid_gating.py",),
    names=("fused_sigmoid_gating*_kernel",),
    helpers=("ops/op.py", "ops/utils.py"),
    roles={
        **ROLES,
        **dict.fromkeys(("a", "b", "dt_bias"), Pointer("fp32")),
        "A_log": Pointer("fp32", fill=-200.0),  # so that a state does not decay
        "beta": Scalar(1.0, "fp32"),
        "threshold": Scalar(20.0, "fp32"),
    },
    needs=("num_accepted_tokens", "ssm_state_indices"),
    warps=1,
)

PROBE = KernelProbe(
    "gated_recurrent_kernel",
    "does the recurrent kernel with gating check the accepted count before it indexes states?",
    SUBJECT,
    VALUES,
    run,
    "this build has no recurrent kernel that gates by itself",
)
