"""Whether a shut gate is told to anybody."""

from __future__ import annotations

import ast

from ..probing.probe import Answer, NotFoundError, Probe, Sources, called, names

FILES = ("v1/worker/gpu_model_runner.py",)
GATE = {"input_fits_in_drafter", "_input_fits_in_drafter"}


def answer(sources: Sources) -> Answer:
    [path, *_] = sources.paths(*FILES) or [""]
    first: int | None = None
    for node in ast.walk(sources.tree(path)) if path else ():
        if isinstance(node, ast.If) and names(node.test) & GATE:
            first = first or node.lineno
            for name, call in called(node):
                if name.startswith(("warning", "info")):
                    return Answer("logged", path, call.lineno, False, ast.unparse(call)[:80])
    if first is None:
        raise NotFoundError("no branch on the gate")
    return Answer("silent", path, first, False, "no log line in a branch of the gate")


PROBE = Probe(
    "gate_log",
    "does the runner log that the gate is shut?",
    FILES,
    {"silent": "no", "logged": "yes"},
    answer,
)
