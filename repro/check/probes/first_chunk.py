"""Whether a request's first chunk of one token is a prefill, so that recycled state is masked."""

from __future__ import annotations

import ast

from ..probing.probe import Answer, NotFoundError, Probe, Sources, called

FILES = ("v1/attention/backends/gdn_attn.py",)
SPLIT = "split_decodes_and_prefills"


def answer(sources: Sources) -> Answer:
    """Read what the batch is split by: lengths alone, or lengths and who is prefilling."""
    path, _, node = sources.function(FILES, "GDNAttentionMetadataBuilder.build")
    for name, call in called(node):
        if name != SPLIT or not call.args:
            continue
        said = " ".join(ast.unparse(call).split())
        if "is_prefilling=" in said:
            return Answer("prefill", path, call.lineno, False, said)
        if isinstance(call.args[0], ast.Name) and {k.arg for k in call.keywords} <= {
            "decode_threshold"
        }:
            return Answer("by length", path, call.lineno, False, said)
        raise NotFoundError(f"{said[:120]} is not known")
    raise NotFoundError(f"no {SPLIT}(…) in build()")


PROBE = Probe(
    "first_chunk",
    "is a request's first chunk of one token a prefill?",
    FILES,
    {
        "prefill": "yes",
        "by length": "no, a decode: it starts from what the recycled block holds",
    },
    answer,
)
