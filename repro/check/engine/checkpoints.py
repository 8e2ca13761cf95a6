"""Tiny checkpoints, made where they are needed: MiMo with MTP, whose next token is wired in.

Target and draft agree on every token (`tokens.py`), so that a sound engine accepts every draft
and every loss is the engine's. In float32 nothing about it is left to rounding. There are three:

- `plain`: attention and MLP are zero, the embedding of the last token alone decides.
- `length_canary`: only the output of the attention is read, and every position attends to itself.
  A sequence length that is too short hides that position, and the token is another one.
- `slot_canary`: half of the token is read at the own position, half at the one before it, which
  attention finds by position. A write to a wrong slot, over that one, changes the token.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UntestableError
from .tokens import VOCABULARY, following

if TYPE_CHECKING:
    import numpy as np

    Weights = dict[str, np.ndarray[Any, np.dtype[np.float32]]]
    Matrix = np.ndarray[Any, np.dtype[np.float32]]

KINDS = ("plain", "length_canary", "slot_canary")
HIDDEN = 256
CODE = HIDDEN // 2  # the code of a token; the other half of the hidden state holds what is read
HEADS, KV_HEADS, HEAD = 4, 2, 64
INTERMEDIATE = 32
LAYERS = 2
ROPE = 10_000.0
SHARPNESS = 6.0  # of the attention to the own token
NEARNESS = 60.0  # of the attention to the position before
# Weight of the token before over the own one. Where the entry before is lost, attention is shared
# by the two beside it; each must outweigh the own one even then.
BEFORE = 3.0


def write_mimo(folder: Path, kind: str, length: int) -> None:
    """Write config.json and model.safetensors (3.7 MB) into `folder`, which is made.

    kind: one of KINDS. length: `max_position_embeddings`, of target and draft. UntestableError
    without the package that writes such files.
    """
    try:
        from safetensors.numpy import save_file
    except ImportError:
        raise UntestableError(
            "a tiny model is written by safetensors, which is not here",
            hint="pip install 'specrepro[engine]'",
        ) from None
    folder.mkdir(parents=True)
    config = mimo_config(length)
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    save_file(mimo_weights(kind), folder / "model.safetensors", metadata={"format": "pt"})


def mimo_config(length: int) -> dict[str, Any]:
    """What vLLM reads to build the model."""
    return {
        "architectures": ["MiMoForCausalLM"],
        # a type that every transformers knows; MiMo's own comes with code of its repository
        "model_type": "qwen2",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": length,
        "rms_norm_eps": 1e-6,
        "rope_theta": ROPE,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "attention_bias": True,
        "use_sliding_window": False,
        "num_nextn_predict_layers": 1,
    }


def mimo_weights(kind: str) -> Weights:
    """Every tensor of the checkpoint, float32, by its name there."""
    import numpy as np

    embedding, head = _vocabulary(kind)
    weights = {
        "model.embed_tokens.weight": embedding,
        "lm_head.weight": head,
        "model.norm.weight": np.ones(HIDDEN, np.float32),
    }
    for layer in range(LAYERS):
        weights |= _block(f"model.layers.{layer}.", kind if layer == 0 else "plain")
    draft = "model.mtp_layers.0."
    # of (hidden state, embedding) the draft takes the embedding: it says what the target says
    take = np.zeros((HIDDEN, 2 * HIDDEN), np.float32)
    take[:, HIDDEN:] = np.eye(HIDDEN, dtype=np.float32)
    weights |= _block(draft, kind)
    weights |= {
        f"{draft}{n}_layernorm.weight": np.ones(HIDDEN, np.float32)
        for n in ("token", "hidden", "final")
    }
    weights[f"{draft}input_proj.weight"] = take
    return weights


def codes() -> Matrix:
    """A code of CODE signs for every token, unlike any other one in each of its halves."""
    import numpy as np

    digests = [hashlib.shake_256(t.to_bytes(2, "big")).digest(CODE // 8) for t in range(VOCABULARY)]
    bits = np.unpackbits(np.frombuffer(b"".join(digests), np.uint8)).reshape(VOCABULARY, CODE)
    return bits.astype(np.float32) * 2 - 1


def _vocabulary(kind: str) -> tuple[Matrix, Matrix]:
    """(embedding, lm_head), both [VOCABULARY, HIDDEN]."""
    import numpy as np

    embedding = np.zeros((VOCABULARY, HIDDEN), np.float32)
    head = np.zeros((VOCABULARY, HIDDEN), np.float32)
    if kind == "plain":
        embedding = np.eye(VOCABULARY, HIDDEN, dtype=np.float32) * 4
        for token in range(VOCABULARY):
            head[following(token)] = embedding[token] / 4
        return embedding, head
    code = codes()
    embedding[:, :CODE] = code
    for token in range(VOCABULARY):
        if kind == "length_canary":
            head[following(token), CODE:] = code[token] / CODE**0.5
        elif token:
            # the token itself, and more weight on the one before it
            head[following(token), CODE : CODE + HEAD] += code[token, :HEAD] / HEAD**0.5
            head[following(following(token)), CODE + HEAD :] += (
                BEFORE * code[token, :HEAD] / HEAD**0.5
            )
    return embedding, head


def _block(prefix: str, kind: str) -> Weights:
    """A decoder layer, its MLP zero, its attention as `kind` wants it."""
    import numpy as np

    q = np.zeros((HEADS, HEAD, HIDDEN), np.float32)
    k = np.zeros((KV_HEADS, HEAD, HIDDEN), np.float32)
    v = np.zeros((KV_HEADS, HEAD, HIDDEN), np.float32)
    o = np.zeros((HIDDEN, HEADS * HEAD), np.float32)
    q_bias = np.zeros((HEADS, HEAD), np.float32)
    k_bias = np.zeros((KV_HEADS, HEAD), np.float32)
    group = HEADS // KV_HEADS
    if kind != "plain":
        same = np.eye(HEAD, dtype=np.float32)
        for kv in range(KV_HEADS):
            part = slice(kv * HEAD, (kv + 1) * HEAD)  # of the code
            k[kv, :, part] = v[kv, :, part] = same
            q[kv * group : (kv + 1) * group, :, part] = SHARPNESS * same
            # the first head of each group is read
            out = CODE + kv * HEAD
            o[out : out + HEAD, kv * group * HEAD : (kv * group + 1) * HEAD] = same
    if kind == "slot_canary":
        query, key = _one_back()
        q[group:], k[1], v[1] = 0, 0, 0
        q_bias[group:], k_bias[1] = NEARNESS * query, key
        v[1, :, :HEAD] = np.eye(HEAD, dtype=np.float32)  # the same half of the code as head 0
    return {
        f"{prefix}self_attn.q_proj.weight": q.reshape(-1, HIDDEN),
        f"{prefix}self_attn.k_proj.weight": k.reshape(-1, HIDDEN),
        f"{prefix}self_attn.v_proj.weight": v.reshape(-1, HIDDEN),
        f"{prefix}self_attn.o_proj.weight": o,
        f"{prefix}self_attn.q_proj.bias": q_bias.reshape(-1),
        f"{prefix}self_attn.k_proj.bias": k_bias.reshape(-1),
        f"{prefix}self_attn.v_proj.bias": np.zeros(KV_HEADS * HEAD, np.float32),
        f"{prefix}mlp.gate_proj.weight": np.zeros((INTERMEDIATE, HIDDEN), np.float32),
        f"{prefix}mlp.up_proj.weight": np.zeros((INTERMEDIATE, HIDDEN), np.float32),
        f"{prefix}mlp.down_proj.weight": np.zeros((HIDDEN, INTERMEDIATE), np.float32),
        f"{prefix}input_layernorm.weight": np.ones(HIDDEN, np.float32),
        f"{prefix}post_attention_layernorm.weight": np.ones(HIDDEN, np.float32),
    }


def _one_back() -> tuple[Matrix, Matrix]:
    """(query, key) before rotation whose product is greatest one position back (NeoX pairs)."""
    import numpy as np

    half = HEAD // 2
    angle = -(ROPE ** (-np.arange(half) / half))
    key = np.concatenate([np.ones(half), np.zeros(half)])
    query = np.concatenate([np.cos(angle), np.sin(angle)])
    return query.astype(np.float32), key.astype(np.float32)
