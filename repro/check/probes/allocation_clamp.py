"""Whether KV slots for drafts are asked for beyond max_model_len."""

from __future__ import annotations

import ast

from ..probing.lift import evaluate
from ..probing.probe import Answer, NotFoundError, Probe, Sources, names
from ..probing.stubs import Record

FILES = ("v1/core/kv_cache_manager.py",)
LENGTH, LOOKAHEAD = 100, 8


def answer(sources: Sources) -> Answer:
    path, _, node = sources.function(FILES, "KVCacheManager.allocate_slots")
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Call) or "num_lookahead_tokens" not in names(inner):
            continue
        if getattr(inner.func, "id", "") == "min" and "max_model_len" in names(inner):
            scope = {
                "self": Record(max_model_len=LENGTH),
                "num_tokens_main_model": LENGTH - 1,
                "num_computed_tokens": LENGTH - 2,
                "total_computed_tokens": LENGTH - 2,
                "num_new_tokens": 1,
                "num_lookahead_tokens": LOOKAHEAD,
            }
            slots = evaluate(inner, path, scope)
            said = f"{LENGTH - 1} tokens and {LOOKAHEAD} drafts ask for {slots} of {LENGTH} slots"
            value = "clamped" if slots <= LENGTH else "not clamped"
            return Answer(value, path, inner.lineno, True, said)
    raise NotFoundError("no expression of num_lookahead_tokens and max_model_len")


PROBE = Probe(
    "allocation_clamp",
    "are slots for drafts allocated up to max_model_len only?",
    FILES,
    {"clamped": "yes", "not clamped": "no"},
    answer,
)
