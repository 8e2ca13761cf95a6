"""The text of the tiny models: one fixed cycle through the vocabulary; every next token is known.

Token 0 is left out of the cycle. It is what an engine drafts in place of a draft, and a model that
could say it would accept one by luck.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

VOCABULARY = 256


def _cycle() -> tuple[int, ...]:
    # an order that looks like none, the same wherever it is computed
    return tuple(
        sorted(range(1, VOCABULARY), key=lambda t: hashlib.sha256(t.to_bytes(2, "big")).digest())
    )


CYCLE = _cycle()
_AT = {token: place for place, token in enumerate(CYCLE)}


def following(token: int) -> int:
    """The token after `token`, which is in 1..VOCABULARY - 1; of 0, which is in no text, 0."""
    return CYCLE[(_AT[token] + 1) % len(CYCLE)] if token else 0


def prompt(length: int, first: int = CYCLE[0]) -> tuple[int, ...]:
    """`length` tokens of the text, from `first` on."""
    start = _AT[first]
    return tuple(CYCLE[(start + i) % len(CYCLE)] for i in range(length))


def continuation(tokens: Sequence[int], length: int) -> tuple[int, ...]:
    """The `length` tokens that a sound engine says after `tokens`, of which there is at least 1."""
    return prompt(length, following(tokens[-1]))
