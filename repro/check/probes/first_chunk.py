"""Whether a request's first chunk of one token is a prefill, so that recycled state is masked."""

from __future__ import annotations

from ..probing.probe import Answer, Probe, Sources, names

FILES = ("v1/attention/backends/gdn_attn.py",)


def answer(sources: Sources) -> Answer:
    path, _, node = sources.function(FILES, "GDNAttentionMetadataBuilder.build")
    known = {"is_prefilling", "no_prior_state"} <= names(node)
    value = "prefill" if known else "by length"
    said = "is_prefilling and no_prior_state are asked" if known else "only query lengths are asked"
    return Answer(value, path, node.lineno, False, said)


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
