"""Whether GDN's metadata of one group of layers is used again for the next."""

from __future__ import annotations

from ..probing.probe import Answer, Probe, Sources

FILES = ("v1/attention/backends/gdn_attn.py",)
BUILDER, UPDATE = "GDNAttentionMetadataBuilder", "update_block_table"


def answer(sources: Sources) -> Answer:
    """Read whether the builder has a method of its own for it."""
    path, _, build = sources.function(FILES, f"{BUILDER}.build")
    node = sources.functions(path).get(f"{BUILDER}.{UPDATE}")
    if node is not None:
        return Answer("reused", path, node.lineno, False, f"{BUILDER}.{UPDATE}")
    return Answer("built", path, build.lineno, False, f"{BUILDER} has no {UPDATE} of its own")


PROBE = Probe(
    "state_metadata",
    "is GDN's metadata of one group of layers used again for the next?",
    FILES,
    {
        "reused": "with runner V2 on CUDA: only the indices of states are gathered anew",
        "built": "no, it is built for each group",
    },
    answer,
)
