"""A tiny GDN hybrid, made where transformers is: Qwen3-Next with random weights of a fixed seed.

Its text means nothing; it is compared with itself, between engines that must answer alike. What an
engine for processors demands of it: experts in every stage of a pipeline, and bfloat16.
"""

from __future__ import annotations

from typing import Any

PERIOD = ["linear_attention", "linear_attention", "full_attention"]


def write_hybrid(folder: str, layers: int) -> None:
    """Write a checkpoint of `layers` layers, a multiple of three, into `folder` (2 to 3 MB)."""
    import torch
    from transformers import Qwen3NextForCausalLM

    shape = config(512, 128, layers)
    shape.initializer_range = 0.08
    torch.manual_seed(0)
    model = Qwen3NextForCausalLM(shape).to(torch.bfloat16)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("embed_tokens.weight") or name.startswith("lm_head"):
                weight.normal_(0, 1.0)
    model.save_pretrained(folder)


def config(vocabulary: int, hidden: int, layers: int) -> Any:
    """Shapes of a hybrid: two GDN layers, then one of attention, and so on."""
    from transformers import Qwen3NextConfig

    return Qwen3NextConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        linear_conv_kernel_dim=4,
        linear_key_head_dim=64,
        linear_value_head_dim=64,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        num_experts=4,
        num_experts_per_tok=2,
        mlp_only_layers=[],
        moe_intermediate_size=32,
        shared_expert_intermediate_size=32,
        decoder_sparse_step=1,
        layer_types=PERIOD * (layers // 3),
        max_position_embeddings=4096,
        tie_word_embeddings=False,
    )
