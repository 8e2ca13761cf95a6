"""Tokens of the toy model in integers: what follows what, without any op. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence

VOCAB = 16
HEADS = 2
HEAD_DIM = 8
SHARPNESS = 64.0  # makes the nearest other position weigh e^-13 of the own one


def next_token(total: int, last: int) -> int:
    """The token after a sequence whose visible tokens sum to `total` and end in `last`; never 0.

    2 and 4 have no divisor in common with VOCAB - 1, so that one exchanged token always shows.
    """
    return 1 + (2 * total + 4 * last + 7) % (VOCAB - 1)


def continuation(tokens: Sequence[int], end: int, window: int) -> list[int]:
    """The sequence grown to `end` tokens one by one: what a run without speculation serves."""
    grown = list(tokens)
    while len(grown) < end:
        grown.append(next_token(sum(grown[-window:] if window else grown), grown[-1]))
    return grown
