"""Whether FlashInfer itself reuses one pinned buffer for its plans.

FlashInfer is not part of an engine's wheel: the answer is known only where it lies beside it.
"""

from __future__ import annotations

import ast

from ..probing.probe import Answer, NotFoundError, Probe, Sources, assigned, names

FILES = ("flashinfer/decode.py",)
BUFFER = "_pin_memory_int_workspace_buffer"


def answer(sources: Sources) -> Answer:
    paths = sources.paths(*FILES)
    if not paths:
        raise NotFoundError("FlashInfer is not part of this build")
    tree = sources.tree(paths[0])
    if {"synchronize", "Event", "record_event"} & names(tree):
        raise NotFoundError("decode.py waits for something: whether for its plan is not known")
    for statement in assigned(tree, BUFFER):
        for flag in ast.walk(statement.value):
            if isinstance(flag, ast.keyword) and flag.arg == "pin_memory":
                pinned = isinstance(flag.value, ast.Constant) and flag.value.value is True
                said = ast.unparse(statement)[:120]
                value = "pinned" if pinned else "pageable"
                return Answer(value, paths[0], statement.lineno, False, said)
    raise NotFoundError(f"no {BUFFER} in {paths[0]}")


PROBE = Probe(
    "library_plan_buffer",
    "does FlashInfer reuse one pinned buffer for its plans, and never wait?",
    FILES,
    {"pinned": "yes", "pageable": "no"},
    answer,
)
