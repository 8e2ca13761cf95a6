"""Whose blocks runner V2's copy of a convolution's window moves, where the tokens of each channel
lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..probe import Bench, KernelProbe, Outcome
from ..subject import Scalar
from .conv_copy_kernel import TOKENS
from .state_copy import UNIT, Copied, Layout, Move, launch
from .state_copy import run as ask
from .state_copy_kernel import ABSENT, RUNNING, SHIFT, VALUES, decided
from .state_copy_kernel import SUBJECT as PLAIN

CHANNELS = UNIT // TOKENS
SUBJECT = replace(
    PLAIN,
    roles={**PLAIN.roles, "CONV_STATE_DIM_FIRST": Scalar(True)},
    needs=(*PLAIN.needs, "CONV_STATE_DIM_FIRST"),
)
LAYOUT = Layout(TOKENS, 1, CHANNELS)


def run(bench: Bench) -> Outcome:
    return ask(bench, _copy, late=True)


def _copy(bench: Bench, rows: Sequence[int]) -> Copied:
    return launch(bench, rows, Move(RUNNING, 0, SHIFT), decided(bench), LAYOUT)


PROBE = KernelProbe(
    "conv_rows_copy_kernel",
    "whose blocks does the copy of a convolution's window move, where channels are rows?",
    SUBJECT,
    VALUES,
    run,
    ABSENT,
)
