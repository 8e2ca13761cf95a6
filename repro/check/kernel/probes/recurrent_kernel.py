"""Whether the recurrent kernel checks the accepted count that it indexes states with."""

from __future__ import annotations

from ..probe import KernelProbe
from ..subject import Pointer, Subject
from .accepted import ROLES, VALUES, run

SUBJECT = Subject(
    files=("ops/fused_recurrent.py",),
    names=("fused_recurrent*_kernel",),
    helpers=("ops/op.py", "ops/utils.py"),
    roles={**ROLES, "g": Pointer("fp32", also=("gk",)), "beta": Pointer("fp32")},
    needs=("num_accepted_tokens", "ssm_state_indices"),
    warps=1,
)

PROBE = KernelProbe(
    "recurrent_kernel",
    "does the recurrent kernel check the accepted count before it indexes states with it?",
    SUBJECT,
    VALUES,
    run,
    "there is no such kernel; the source depth answers",
)
