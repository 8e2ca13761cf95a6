"""Tensors that scenarios which serve the toy model share: their names, and the units they have."""

from __future__ import annotations

from collections.abc import Mapping

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
# tensor → the unit that `owners` of a case may name for it
PAGED: Mapping[str, tuple[str, ...]] = {
    "block_table": ("row",),
    "key_cache": ("block",),
    "value_cache": ("block",),
}
