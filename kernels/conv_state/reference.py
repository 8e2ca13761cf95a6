"""Causal depthwise convolution with an indexed history; the plain-Python side of `conv_state`.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def conv_state(
    x: Tensor,
    weight: Tensor,
    state: Tensor,
    state_index: Tensor,
    query_start: Tensor,
    out: Tensor,
    dim: int,
    width: int,
    x_stride: int,
    out_stride: int,
    state_stride: int,
    *,
    rows: int,
) -> None:
    """out[t] = sum of weight[:, i] * (history, then tokens)[t + i]; the history moves on.

    x fp32[tokens, dim], weight fp32[dim, width], state fp32[blocks, dim, width - 1] (oldest first),
    state_index int32[requests], query_start int32[requests + 1], out fp32[tokens, dim]. An index
    <= 0, or no token: nothing. Sums run from the oldest on, in fp32, so they are the device's.
    """
    channel = np.arange(dim)
    history_at = channel * (width - 1) + np.arange(width - 1)[:, None]  # [width - 1, dim]
    for row in range(rows):
        block = int(state_index.load(row, row=row))
        if block <= 0:
            continue
        first = int(query_start.load(row, row=row))
        tokens = np.arange(first, int(query_start.load(row + 1, row=row)))[:, None]
        count = len(tokens)
        if count == 0:
            continue
        history = state.load(block * state_stride + history_at, row=row)
        entries = np.concatenate([history, x.load(tokens * x_stride + channel, row=row)])
        total = np.zeros((count, dim), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # a wrong block may hold anything
            for i in range(width):
                total += weight.load(channel * width + i, row=row) * entries[i : i + count]
        out.store(tokens * out_stride + channel, total, row=row)
        state.store(block * state_stride + history_at, entries[count:], row=row)
