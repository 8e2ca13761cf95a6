"""Seeded Gumbel-max sampling by position; the plain-Python side of `gumbel_sample`.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...repro.ops import Array, Tensor

GOLDEN = 0x9E3779B9  # 2**32 / golden ratio: steps of it visit every 32-bit number


def gumbel_sample(
    logits: Tensor,
    positions: Tensor,
    sampled: Tensor,
    processed: Tensor,
    column_scalar: Tensor | None,
    vocab: int,
    logits_stride: int,
    processed_stride: int,
    column_stride: int,
    column: int,
    has_column_scalar: int,
    seed: int,
    temperature: float,
    *,
    rows: int,
) -> None:
    """sampled[row] = argmax(logits[row] / temperature + noise); the quotients go to processed.

    logits fp32[requests, vocab], positions int64[requests], sampled int32[requests], processed
    fp32[requests, columns, vocab], column_scalar int32[1] or None. Quotients are fp32 as on the
    device, the noise fp64, so that the error of the device kernel is its own.
    """
    scalar = column_scalar if has_column_scalar else None
    tokens = np.arange(vocab)
    for row in range(rows):
        position = int(positions.load(row, row=row))
        place = int(scalar.load(0, row=row)) if scalar is not None else column
        scores = logits.load(row * logits_stride + tokens, row=row)
        if temperature != 0:
            with np.errstate(over="ignore"):
                scores = scores / np.float32(temperature)
        at = row * processed_stride + place * column_stride + tokens
        processed.store(at, scores, row=row)
        if temperature != 0:
            scores = scores + gumbel_noise(seed, position, tokens)
        sampled.store(row, _largest(scores), row=row)


def gumbel_noise(seed: int, position: int, tokens: ArrayLike) -> NDArray[np.float64]:
    """Gumbel noise of tokens int[n] at a position, from a counter-based hash.

    seed int32, position int64, both taken as their bits. u is one of 2**23 equally spaced numbers
    within (0, 1), none of them a border; noise = -log(-log(u)).
    """
    state = _mix((seed + GOLDEN) % 2**32)
    state = _mix(state ^ (position % 2**32))
    state = _mix(state ^ (position >> 32) % 2**32)
    counter = np.asarray(tokens, np.int64).astype(np.uint32) + np.uint32(1)
    bits = _mix(counter * np.uint32(GOLDEN) + state)
    u = ((bits >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23
    noise: NDArray[np.float64] = -np.log(-np.log(u))
    return noise


def _mix(word: ArrayLike) -> NDArray[np.uint32]:
    """Every bit of a 32-bit word in every bit of the result, one to one (two xorshift-multiply)."""
    x = np.atleast_1d(np.asarray(word, np.uint32))  # an array wraps silently, a scalar warns
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def _largest(scores: Array) -> int:
    """The lowest index of the largest score, not-a-numbers aside; 0 where all are."""
    return int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))
