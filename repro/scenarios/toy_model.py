"""A language model of one attention layer whose next token is known in closed form.

Head 0 has keys of zero, so it averages the tokens of everything it sees: whoever overwrites one
cache entry of a sequence changes every later prediction of it. Head 1 has one rotated key for all
tokens, so it sees only its own position: a wrong rotation makes it see others. The next token is an
integer function of the two, so a healthy draft is accepted always, and a damaged one shows.

The oracle in toy_tokens.py computes the same tokens from the integers alone, without any op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .toy_tokens import HEAD_DIM, HEADS, SHARPNESS, VOCAB, continuation, next_token

__all__ = [
    "HEADS",
    "HEAD_DIM",
    "SHARPNESS",
    "VOCAB",
    "continuation",
    "decode",
    "embed",
    "next_token",
    "prompt",
    "rope_table",
]


def prompt(length: int, seed: int) -> list[int]:
    """`length` tokens of a prompt, none of them 0."""
    return [int(t) for t in np.random.default_rng(seed).integers(1, VOCAB, length)]


def embed(tokens: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Query, key and value fp16[tokens, HEADS, HEAD_DIM] before rotation."""
    shape = (len(tokens), HEADS, HEAD_DIM)
    query, key, value = (np.zeros(shape, np.float16) for _ in range(3))
    key[:, 1, : HEAD_DIM // 2] = 1
    query[:, 1, : HEAD_DIM // 2] = SHARPNESS
    value[:, :, 0] = np.asarray(tokens)[:, None]
    return query, key, value


def decode(out: NDArray[Any], visible: Sequence[int]) -> list[int]:
    """Next tokens from output fp32[queries, HEADS, HEAD_DIM] over `visible` positions each."""
    totals = np.rint(np.nan_to_num(out[:, 0, 0]) * np.asarray(visible))
    last = np.rint(np.nan_to_num(out[:, 1, 0]))
    return [next_token(int(total), int(own)) for total, own in zip(totals, last, strict=True)]


def rope_table(positions: int) -> NDArray[np.float32]:
    """fp32[positions, HEAD_DIM]: cosines, then sines, of position / 10000^(2 i / HEAD_DIM)."""
    half = HEAD_DIM // 2
    frequency = 10000.0 ** (-2.0 * np.arange(half) / HEAD_DIM)
    angle = np.arange(positions)[:, None] * frequency
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
