"""Whose blocks runner V2's copy of a convolution's window moves, where the tokens of each channel
lie side by side."""

from __future__ import annotations

from dataclasses import replace

from ..probe import KernelProbe
from ..subject import Scalar
from .conv_copy_kernel import TOKENS, window_copies
from .state_copy import UNIT, Layout
from .state_copy_kernel import ABSENT, VALUES
from .state_copy_kernel import SUBJECT as PLAIN

CHANNELS = UNIT // TOKENS
SUBJECT = replace(
    PLAIN,
    roles={**PLAIN.roles, "CONV_STATE_DIM_FIRST": Scalar(True)},
    needs=(*PLAIN.needs, "CONV_STATE_DIM_FIRST"),
)
LAYOUT = Layout(TOKENS, 1, CHANNELS)


PROBE = KernelProbe(
    "conv_rows_copy_kernel",
    "whose blocks does the copy of a convolution's window move, where channels are rows?",
    SUBJECT,
    VALUES,
    window_copies(LAYOUT),
    ABSENT,
)
