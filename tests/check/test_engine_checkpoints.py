"""The tiny models, computed here in numpy: their text, and what each of them notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from specrepro.repro.check.engine.checkpoints import KINDS, mimo_weights, write_mimo
from specrepro.repro.check.engine.tokens import CYCLE, continuation, following, prompt

HEADS, KV_HEADS, HEAD = 4, 2, 64
Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]


def norm(x: Floats) -> Floats:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def rotated(x: Floats, positions: Floats) -> Floats:
    """NeoX rotation of x[tokens, heads, 64]."""
    angle = positions[:, None, None] * 10_000.0 ** (-np.arange(HEAD // 2) / (HEAD // 2))
    low, high = x[..., : HEAD // 2], x[..., HEAD // 2 :]
    cos, sin = np.cos(angle), np.sin(angle)
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


def attention(
    weights: dict[str, Floats], prefix: str, x: Floats, seen: Floats, stale: bool
) -> Floats:
    """Attention of x[tokens, 256]; seen[i, j]: whether i looks at j.

    stale: the last position was written to the slot of the one before it.
    """
    n = len(x)
    positions = np.arange(n, dtype=np.float64)

    def project(name: str, heads: int) -> Floats:
        out = x @ weights[f"{prefix}self_attn.{name}_proj.weight"].T
        return (out + weights[f"{prefix}self_attn.{name}_proj.bias"]).reshape(n, heads, HEAD)

    q, k = rotated(project("q", HEADS), positions), rotated(project("k", KV_HEADS), positions)
    v = project("v", KV_HEADS)
    if stale:
        k[-2], v[-2], k[-1], v[-1] = k[-1], v[-1], 0, 0
    k, v = np.repeat(k, HEADS // KV_HEADS, axis=1), np.repeat(v, HEADS // KV_HEADS, axis=1)
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(HEAD)
    scores = np.where(seen, scores, -np.inf)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    out = np.einsum("hij,jhd->ihd", scores, v).reshape(n, -1)
    return out @ weights[f"{prefix}self_attn.o_proj.weight"].T


def said(
    weights: dict[str, Floats],
    tokens: tuple[int, ...],
    *,
    prefix: str = "model.layers.0.",
    short: int = 0,
    stale: bool = False,
) -> list[int]:
    """The next token at every position. short: how many positions too few the last one sees."""
    x = weights["model.embed_tokens.weight"][list(tokens)].astype(np.float64)
    seen = np.tril(np.ones((len(tokens), len(tokens)), bool))
    if short:
        seen[-1, len(tokens) - short :] = False
    x = x + attention(weights, prefix, norm(x), seen, stale)
    return [int(t) for t in np.argmax(norm(x) @ weights["lm_head.weight"].T, axis=-1)]


def test_the_text_is_one_cycle_through_all_tokens_but_0() -> None:
    assert sorted(CYCLE) == list(range(1, 256))
    token, seen = 5, set()
    for _ in range(255):
        token = following(token)
        seen.add(token)
    assert (token, len(seen)) == (5, 255)
    assert continuation(prompt(9), 4) == prompt(13)[9:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prefix", ["model.layers.0.", "model.mtp_layers.0."])
def test_target_and_draft_say_the_text(kind: str, prefix: str) -> None:
    # longer than the cycle: every token comes twice, and only the near one may be attended to
    tokens = prompt(300)
    got = said(mimo_weights(kind), tokens, prefix=prefix)
    first = 1 if kind == "slot_canary" else 0  # there is nothing before the first position
    assert got[first:] == [following(t) for t in tokens][first:]


def test_the_length_canary_notices_a_sequence_length_that_is_too_short() -> None:
    tokens = prompt(40)
    weights = mimo_weights("length_canary")
    assert said(weights, tokens, short=1)[-1] != following(tokens[-1])
    assert said(mimo_weights("plain"), tokens, short=1)[-1] == following(tokens[-1])


def test_the_slot_canary_notices_a_key_that_was_written_over() -> None:
    tokens = prompt(40)
    right = following(tokens[-1])
    # the length canary finds its own key in the wrong slot too
    assert said(mimo_weights("length_canary"), tokens, stale=True)[-1] == right
    assert said(mimo_weights("slot_canary"), tokens, stale=True)[-1] != right


def test_a_checkpoint_is_written_as_the_engine_reads_it(tmp_path: Path) -> None:
    write_mimo(tmp_path / "model", "plain", 128)
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["max_position_embeddings"] == 128
    stored = load_file(tmp_path / "model" / "model.safetensors")
    weights = mimo_weights("plain")
    assert {name: tensor.shape for name, tensor in stored.items()} == {
        name: tensor.shape for name, tensor in weights.items()
    }
    assert all(tensor.dtype == np.float32 for tensor in stored.values())
