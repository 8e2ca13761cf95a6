"""Whose blocks runner V2's copy of a convolution's window moves, and by how many tokens: one token
after the other, from one block to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..probe import Bench, KernelProbe, Outcome
from .state_copy import UNIT, Copied, Layout, Move, launch
from .state_copy import run as ask
from .state_copy_kernel import ABSENT, RUNNING, SHIFT, SUBJECT, VALUES, decided

TOKENS = 4  # of a window
LAYOUT = Layout(TOKENS, UNIT // TOKENS)


def window_copies(layout: Layout) -> Callable[[Bench], Outcome]:
    """How to ask a copy of windows that lie as `layout` says."""

    def copied(bench: Bench, rows: Sequence[int]) -> Copied:
        return launch(bench, rows, Move(RUNNING, 0, SHIFT), decided(bench), layout)

    return lambda bench: ask(bench, copied, late=True)


PROBE = KernelProbe(
    "conv_copy_kernel",
    "whose blocks does the copy of a convolution's window move?",
    SUBJECT,
    VALUES,
    window_copies(LAYOUT),
    ABSENT,
)
