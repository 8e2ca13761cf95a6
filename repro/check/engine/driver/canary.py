"""A GDN hybrid with one MTP layer whose next token is known, if the recurrent state is right.

One GDN layer is read, the last of the model. Its key is a slot that the token names, one of SLOTS;
its value is the token. Its query is the slot of the token *before*, which the layer's convolution
still holds: what is read is the token before, as the recurrent state has it. Nothing decays, and a
write replaces what its slot held, so every value is exact in bfloat16.

The next token follows from the last one, and with more weight from the one before as it was read: a
state or a convolution that is of another step, or of another request, makes another token. A state
of zeros says nothing, and the last token alone decides. The draft knows the last token alone.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

CODE = 64  # signs that tell a token, half of them positive
SLOTS = 16
HIDDEN = 256
HEADS, HEAD = 2, 64  # of keys in a GDN layer; values have twice as many
SLOT, ONE, READ = CODE, CODE + SLOTS, 128  # where slot, constant and what is read stand
SCALE = 8.0  # silu of it is itself, of its negative nothing
OPEN = 20.0  # of a gate: its sigmoid is 1
KEPT = -30.0  # log of the decay rate
BEFORE = 3.0  # weight of the token before over the last one


def write_canary(folder: str, layers: int, cycle: list[int]) -> None:
    """Write a checkpoint of `layers` layers, a multiple of three, into `folder` (4 to 6 MB).

    cycle: the text, every token of the vocabulary but 0 once.
    """
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import Qwen3NextForCausalLM

    from .hybrid import config

    shape = config(len(cycle) + 1, HIDDEN, layers)
    shape.num_nextn_predict_layers = 1
    Qwen3NextForCausalLM(shape).to(torch.bfloat16).save_pretrained(folder)
    # names and shapes are those that transformers writes
    file = os.path.join(folder, "model.safetensors")
    weights = {name: torch.zeros_like(weight) for name, weight in load_file(file).items()}
    for name, weight in weights.items():
        if name.endswith("linear_attn.norm.weight"):
            weight += 1
        elif name.endswith("A_log"):
            weight += KEPT
    embedding, head = vocabulary(cycle)
    weights["model.embed_tokens.weight"].copy_(torch.from_numpy(embedding))
    weights["lm_head.weight"].copy_(torch.from_numpy(head))
    last = max(layer(name) for name in weights if ".linear_attn." in name)
    memory(weights, f"model.layers.{last}.linear_attn.")
    weights.update(draft(weights))
    whole = {name: weight.contiguous() for name, weight in weights.items()}
    save_file(whole, file, metadata={"format": "pt"})


def layer(name: str) -> int:
    return int(name.split(".")[2])


def vocabulary(cycle: list[int]) -> tuple[Any, Any]:
    """(what a token puts into the hidden state, what makes a token of it), of float32."""
    import numpy as np

    embedding = np.zeros((len(cycle) + 1, HIDDEN), np.float32)
    head = np.zeros_like(embedding)
    for place, token in enumerate(cycle):
        code = signs(token)
        embedding[token, :CODE] = code
        embedding[token, SLOT + place % SLOTS] = 4
        embedding[token, ONE] = 4
        head[cycle[(place + 1) % len(cycle)], :CODE] += code / 8
        head[cycle[(place + 2) % len(cycle)], READ : READ + CODE] += BEFORE * code / 8
    return embedding, head


def signs(token: int) -> Any:
    import numpy as np

    def drawn(place: int) -> bytes:
        return hashlib.sha256(f"{token}.{place}".encode()).digest()

    code = -np.ones(CODE, np.float32)
    code[sorted(range(CODE), key=drawn)[: CODE // 2]] = 1
    return code


def memory(weights: dict[str, Any], prefix: str) -> None:
    """Let the first head of a GDN layer write each token to its slot, and read the one before."""
    # rows of a key head: its query, its key, two values, two gates of the output
    project = weights[prefix + "in_proj_qkvz.weight"]
    for slot in range(SLOTS):
        project[slot, SLOT + slot] = SCALE
        project[HEAD + slot, SLOT + slot] = SCALE
    for place in range(CODE):
        project[2 * HEAD + place, place] = SCALE
        weights[prefix + "out_proj.weight"][READ + place, place] = 1
    project[4 * HEAD : 6 * HEAD, ONE] = SCALE
    weights[prefix + "in_proj_ba.weight"][:2, ONE] = OPEN
    # channels: queries, keys, values of all heads; the last tap is the token itself
    taps = weights[prefix + "conv1d.weight"]
    taps[:HEAD, 0, 2] = 1
    taps[HEADS * HEAD : (HEADS + 1) * HEAD, 0, 3] = 1
    taps[2 * HEADS * HEAD : (2 * HEADS + 1) * HEAD, 0, 3] = 1


def draft(weights: dict[str, Any]) -> dict[str, Any]:
    """The MTP layer: an attention layer that adds nothing, on the embedding of the last token."""
    import torch

    whole = max(layer(name) for name in weights if ".self_attn." in name)
    prefix = f"model.layers.{whole}."
    found = {
        name.replace(prefix, "mtp.layers.0."): weight.clone()
        for name, weight in weights.items()
        if name.startswith(prefix)
    }
    take = torch.zeros((HIDDEN, 2 * HIDDEN), dtype=torch.bfloat16)
    take[:, :HIDDEN] = torch.eye(HIDDEN)
    found["mtp.fc.weight"] = take
    for name in ("norm", "pre_fc_norm_hidden", "pre_fc_norm_embedding"):
        # zero is one: these norms add it to their weight
        found[f"mtp.{name}.weight"] = torch.zeros(HIDDEN, dtype=torch.bfloat16)
    return found
