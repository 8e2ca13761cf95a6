"""Whether the engine's reused host buffers for FlashInfer plans are pinned under runner V1."""

from __future__ import annotations

import ast
from typing import Any

from ..probing.lift import evaluate
from ..probing.probe import Answer, NotFoundError, Probe, Sources, assigned
from ..probing.stubs import Record

FILES = ("v1/attention/backends/flashinfer.py",)


def answer(sources: Sources) -> Answer:
    """Evaluate the flag that the buffers are made with, for runner V1 and pinnable memory."""
    path, _, node = sources.function(FILES, "FlashInferMetadataBuilder.__init__")
    scope: dict[str, Any] = {
        "envs": Record(VLLM_USE_V2_MODEL_RUNNER=False),
        "vllm_config": Record(use_v2_model_runner=False),
        "PIN_MEMORY": True,
        "is_pin_memory_available": lambda: True,
    }
    for statement in assigned(node, "pin_memory"):
        pinned = bool(evaluate(statement.value, path, scope))
        said = f"{ast.unparse(statement)} is {pinned}"
        return Answer("pinned" if pinned else "pageable", path, statement.lineno, True, said)
    flags = [k for k in ast.walk(node) if isinstance(k, ast.keyword) and k.arg == "pin_memory"]
    if flags and all(isinstance(k.value, ast.Constant) and not k.value.value for k in flags):
        return Answer("pageable", path, flags[0].value.lineno, False, "pin_memory=False")
    raise NotFoundError("nothing says whether the buffers are pinned")


PROBE = Probe(
    "plan_buffers",
    "are the engine's reused host buffers for FlashInfer plans pinned under runner V1?",
    FILES,
    {
        "pinned": "yes: their copy to the device is asynchronous",
        "pageable": "no: their copy is made before the call returns",
    },
    answer,
)
