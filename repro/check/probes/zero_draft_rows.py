"""Whether a GDN batch without drafts keeps the offset of accepted tokens."""

from __future__ import annotations

import ast

from ..probing.probe import Answer, Probe, Sources, names

FILES = ("v1/attention/backends/gdn_attn.py",)


def answer(sources: Sources) -> Answer:
    path, _, node = sources.function(FILES, "GDNAttentionMetadataBuilder.build")
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.Compare)
            and isinstance(inner.ops[0], ast.Eq)
            and isinstance(inner.comparators[0], ast.Constant)
            and inner.comparators[0].value == 0
            and {"num_decode_draft_tokens_cpu", "sum", "item"} <= names(inner.left)
        ):
            return Answer("lost", path, inner.lineno, False, ast.unparse(inner))
    return Answer("kept", path, node.lineno, False, "no branch on `drafts.sum().item() == 0`")


PROBE = Probe(
    "zero_draft_rows",
    "does a batch whose rows all drafted nothing keep the offset of accepted tokens?",
    FILES,
    {"kept": "yes", "lost": "no: it leaves the only path that applies the offset"},
    answer,
)
