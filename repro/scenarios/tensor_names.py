"""Names of the tensors that scenarios which serve the toy model share."""

from __future__ import annotations

SERVED = (
    "block_table",
    "bonus_tokens",
    "draft_start",
    "draft_tokens",
    "key",
    "key_cache",
    "noise",
    "out",
    "output_tokens",
    "positions",
    "query",
    "query_positions",
    "query_start",
    "rope_table",
    "seq_lens",
    "slots",
    "target_key_cache",
    "target_probs",
    "target_rope_table",
    "target_value_cache",
    "uniform",
    "value",
    "value_cache",
)
