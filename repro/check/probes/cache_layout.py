"""How a tensor of the KV cache says which layers lie in it."""

from __future__ import annotations

import ast

from ..probing.probe import Answer, NotFoundError, Probe, Sources

FILES = ("v1/kv_cache_interface.py",)
TENSOR = "KVCacheTensor"


def answer(sources: Sources) -> Answer:
    """Read the fields of the record."""
    path, _, node = sources.function(FILES, TENSOR)
    fields = {
        statement.target.id
        for statement in getattr(node, "body", ())
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }
    value = {
        (True, False): "shared",
        (False, True): "strided",
    }.get(("shared_by" in fields, {"layers", "layer_stride"} <= fields))
    said = f"{TENSOR}: {', '.join(sorted(fields))}"
    if value is None:
        raise NotFoundError(said)
    return Answer(value, path, node.lineno, False, said)


PROBE = Probe(
    "cache_layout",
    "how do layers share a tensor of the KV cache?",
    FILES,
    {
        "shared": "the layers that are named share all of it",
        "strided": "each layer has a stride in one allocation, by a layout that workers agree on",
    },
    answer,
)
