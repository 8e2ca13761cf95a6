"""The length a draft model gets whose own is shorter than the target's."""

from __future__ import annotations

from ..probing.lift import lift
from ..probing.probe import Answer, NotFoundError, Probe, Sources
from ..probing.stubs import Logger

FILES = ("config/speculative.py",)


def answer(sources: Sources) -> Answer:
    path, _, node = sources.function(FILES, "SpeculativeConfig._maybe_override_draft_max_model_len")
    length = lift(node, path, {"logger": Logger()})(None, 32, 128)
    if length not in (32, 128):
        raise NotFoundError(f"a draft of 32 under a target of 128 gets {length}")
    said = f"a draft of 32 under a target of 128 gets {length}"
    return Answer("own" if length == 32 else "target", path, node.lineno, True, said)


PROBE = Probe(
    "draft_length",
    "which max_model_len has a draft whose own is shorter?",
    FILES,
    {"own": "its own, the shorter one", "target": "the target's"},
    answer,
)
