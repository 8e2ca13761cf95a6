"""Model runner V2: where its parts are, and whether a build has it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .probe import Answer, Function, NotFoundError, Sources

SWITCH = "VLLM_USE_V2_MODEL_RUNNER"
ENVIRONMENT = "vllm/envs.py"
DRAFTERS = ("v1/worker/gpu/spec_decode/*.py",)
NONE = "no runner V2"


def missing(sources: Sources) -> Answer | None:
    """The answer of a build without runner V2: its list of variables lacks the switch. None for
    one that has it."""
    for path in sources.paths(ENVIRONMENT):
        tree = sources.tree(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value == SWITCH:
                return None
            if isinstance(node, ast.Name) and node.id == SWITCH:
                return None
        for node in tree.body:
            target = getattr(node, "target", None) or (getattr(node, "targets", None) or [None])[0]
            if getattr(target, "id", "") == "environment_variables":
                return Answer(
                    NONE, path, node.lineno, False, f"the list of variables has no {SWITCH}"
                )
    raise NotFoundError(f"neither {SWITCH} nor a list of variables in {ENVIRONMENT}")


def drafter_functions(sources: Sources) -> Iterator[tuple[str, str, Function]]:
    """(path, qualified name, node) of everything that runner V2's drafters define."""
    for path in sources.paths(*DRAFTERS):
        for name, node in sources.functions(path).items():
            yield path, name, node
