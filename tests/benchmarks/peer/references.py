"""What the compared kernels must leave behind, in plain numpy, for inputs without a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from workloads import BLOCK, Array, Workload

TOLERANCE = 1e-4  # of results that are sums in another order


def scatter(a: Mapping[str, Any]) -> dict[str, Array]:
    width = a["key"].size // a["slots"].size
    caches = {}
    for cache, new in (("key_cache", "key"), ("value_cache", "value")):
        filled = np.array(a[cache])
        filled.reshape(-1, width)[a["slots"]] = a[new].reshape(-1, width)
        caches[cache] = filled
    return caches


def draft_slots(a: Mapping[str, Any]) -> dict[str, Array]:
    table = a["block_table"].reshape(-1, a["table_stride"]).astype(np.int64)
    positions = a["lengths"][:, None] + np.arange(a["drafts"])
    blocks = np.take_along_axis(table, positions // BLOCK, axis=1)
    return {"slots": (blocks * BLOCK + positions % BLOCK).reshape(-1)}


def paged_decode(a: Mapping[str, Any]) -> dict[str, Array]:
    heads, rows = a["heads"], a["lengths"].size
    width = a["query"].size // (rows * heads)
    query = a["query"].reshape(rows, heads, width).astype(np.float64) * a["scale"]
    table = a["block_table"].reshape(rows, -1)
    keys, values = (a[n].reshape(-1, BLOCK, heads, width) for n in ("key_cache", "value_cache"))
    out = np.empty((rows, heads, width))
    for row, length in enumerate(a["lengths"]):
        k, v = (
            x[table[row]].reshape(-1, heads, width)[:length].astype(np.float64)
            for x in (keys, values)
        )
        scores = np.einsum("hd,phd->hp", query[row], k)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        out[row] = np.einsum("hp,phd->hd", weights, v)
    return {"out": out.reshape(-1)}


def gumbel_argmax(a: Mapping[str, Any]) -> dict[str, Array]:
    offsets = np.arange(a["logits"].size, dtype=np.uint64)
    u = np.maximum(uniform(philox(a["seed"], offsets)), 1e-7)
    scores = a["logits"].astype(np.float64) - np.log(-np.log(u))
    return {"sampled": scores.reshape(-1, a["stride"]).argmax(axis=1)}


def gated_delta(a: Mapping[str, Any]) -> dict[str, Array]:
    rows, values = a["state_index"].size, a["values"]
    q, k = (a[name].reshape(rows, -1).astype(np.float64) for name in ("q", "k"))
    state = a["state"].reshape(-1, values, q.shape[1]).astype(np.float64)
    out = np.empty((rows, values))
    for row, index in enumerate(a["state_index"]):
        s = state[index] * np.exp(np.float64(a["decay"][row]))
        change = (a["v"].reshape(rows, values)[row] - s @ k[row]) * a["beta"][row]
        state[index] = s + np.outer(change, k[row])
        out[row] = state[index] @ q[row]
    return {"out": out.reshape(-1), "state": state.reshape(-1)}


def expert_counts(a: Mapping[str, Any]) -> dict[str, Array]:
    return {"counts": np.bincount(a["experts"], minlength=a["counts"].size)}


def vector_add(a: Mapping[str, Any]) -> dict[str, Array]:
    return {"out": a["left"] + a["right"]}


def philox(seed: int, offsets: Array) -> Array:
    """uint32: the first word of Philox 4x32-10 (Salmon et al. 2011), counter `offsets`, 0, 0, 0."""
    low = np.uint64(0xFFFFFFFF)
    c = [offsets & low, np.zeros_like(offsets), np.zeros_like(offsets), np.zeros_like(offsets)]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (b >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]),
            b & low,
            (a >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]),
            a & low,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype(np.uint32)


def uniform(words: Array) -> Array:
    """float64 within [0, 1) of uint32 words, as tl.rand makes it: of the sign's absolute value."""
    signed = words.view(np.int32).astype(np.int64)
    return np.where(signed < 0, -signed - 1, signed) * 4.6566127342e-10


REFERENCES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Array]]] = {
    "scatter": scatter,
    "scatter_or_return": scatter,
    "draft_slots": draft_slots,
    "paged_decode": paged_decode,
    "gumbel_argmax": gumbel_argmax,
    "gated_delta": gated_delta,
    "expert_counts": expert_counts,
    "vector_add": vector_add,
}


def wrong_outputs(op: str, workload: Workload, left: Mapping[str, Any]) -> list[str]:
    """Names of the outputs in `left` that differ from the reference."""
    expected = REFERENCES[op](workload.arguments)
    return [
        name
        for name in workload.outputs
        if not np.allclose(left[name], expected[name], rtol=TOLERANCE, atol=TOLERANCE)
    ]
