"""Recurrent gated delta rule on indexed states; the plain-Python side of `gated_delta_rule`.

Semantics, origin, row rule and what is not checked: see kernel.py beside this file.
"""

from __future__ import annotations

import numpy as np

from ...repro.ops import Tensor


def gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    decay: Tensor,
    beta: Tensor,
    state: Tensor,
    state_index: Tensor,
    accepted: Tensor | None,
    query_start: Tensor,
    out: Tensor,
    heads: int,
    key_dim: int,
    value_dim: int,
    index_stride: int,
    state_stride: int,
    has_accepted: int,
    *,
    rows: int,
) -> None:
    """Per token: S = exp(decay) S; S += beta (v - S k) k^T; out = S q.

    q, k fp32[tokens, heads, key_dim], v, out fp32[tokens, heads, value_dim], decay, beta
    fp32[tokens, heads], state fp32[blocks, heads, value_dim, key_dim], state_index int32[requests,
    columns], accepted int32[requests] or None, query_start int32[requests + 1]. Which state is read
    and written: `StateOps.gated_delta_rule`. A token is computed in fp64 and its state rounded to
    fp32, so a sequence gives the same bits however it is cut into launches.
    """
    counts = accepted if has_accepted else None
    head = np.arange(heads)
    key_at = head[:, None] * key_dim + np.arange(key_dim)
    value_at = head[:, None] * value_dim + np.arange(value_dim)
    state_at = value_at[:, :, None] * key_dim + np.arange(key_dim)  # [heads, value_dim, key_dim]
    for row in range(rows):
        first = int(query_start.load(row, row=row))
        tokens = np.arange(first, int(query_start.load(row + 1, row=row)))
        if tokens.size == 0:
            continue
        columns = row * index_stride
        column = int(counts.load(row, row=row)) - 1 if counts is not None else 0
        start = int(state_index.load(columns + column, row=row))
        if start <= 0:
            continue
        s = state.load(start * state_stride + state_at, row=row)
        at = tokens[:, None, None]
        queries = q.load(at * (heads * key_dim) + key_at, row=row).astype(np.float64)
        keys = k.load(at * (heads * key_dim) + key_at, row=row).astype(np.float64)
        values = v.load(at * (heads * value_dim) + value_at, row=row).astype(np.float64)
        decays = decay.load(tokens[:, None] * heads + head, row=row).astype(np.float64)
        betas = beta.load(tokens[:, None] * heads + head, row=row).astype(np.float64)
        for i, token in enumerate(tokens):
            with np.errstate(over="ignore", invalid="ignore"):  # a wrong state may hold anything
                kept = np.exp(decays[i])[:, None, None] * s
                change = betas[i][:, None] * (values[i] - (kept * keys[i][:, None]).sum(2))
                s = (kept + change[:, :, None] * keys[i][:, None]).astype(np.float32)
                answer = (s * queries[i][:, None]).sum(2).astype(np.float32)
            out.store(token * (heads * value_dim) + value_at, answer, row=row)
            if counts is not None:
                target = int(state_index.load(columns + i, row=row))
                if target > 0:
                    state.store(target * state_stride + state_at, s, row=row)
        if counts is None:
            state.store(start * state_stride + state_at, s, row=row)
