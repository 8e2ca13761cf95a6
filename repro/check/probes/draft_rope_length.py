"""For which drafts the engine raises max_position_embeddings to the target's length."""

from __future__ import annotations

import ast
from typing import Any

from ..probing.lift import constants, evaluate, lift
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources, called, names
from ..probing.stubs import Logger, Record

FILES = ("config/speculative.py",)
RAISE = "_maybe_override_draft_max_position_embeddings"
ONLY = "_rope_only_sizes_cache"
INIT = "SpeculativeConfig.__post_init__"
METHODS = ("eagle", "eagle3", "mtp", "dflash", "dspark", "draft_model")
ROPES = ("default", "yarn")
DRAFT, TARGET = 32, 128


def answer(sources: Sources) -> Answer:
    """Run the function for two kinds of RoPE, and the condition around its call for each method."""
    for path in sources.paths(*FILES):
        table = sources.functions(path)
        node, init = table.get(f"SpeculativeConfig.{RAISE}"), table.get(INIT)
        if init is None:
            continue
        if node is None:
            kept = {f"{method} {rope}": "kept" for method in METHODS for rope in ROPES}
            return Answer(kept, path, init.lineno, False, f"no {RAISE}")
        raised = {rope: _raised(sources, path, node, rope) for rope in ROPES}
        asked = _condition(init)
        value = {
            f"{method} {rope}": "raised" if raised[rope] and _met(asked, path, method) else "kept"
            for method in METHODS
            for rope in ROPES
        }
        nested = "raised" if _raised(sources, path, node, "default", nested=True) else "kept"
        said = f"if {ast.unparse(asked)}; in a text_config of its own it is {nested}"
        return Answer(value, path, node.lineno, True, said)
    raise NotFoundError(f"no {INIT}")


def _raised(
    sources: Sources, path: str, node: Function, rope: str, *, nested: bool = False
) -> bool:
    scope: dict[str, Any] = {"logger": Logger()}
    if (only := sources.functions(path).get(ONLY)) is not None:
        # as transformers gives it: the parameters of each kind of layer that the config itself has
        scope |= constants(sources, path)
        scope["iter_rope_parameters"] = lambda config: (
            [config.rope_parameters] if hasattr(config, "rope_parameters") else []
        )
        scope[ONLY] = lift(only, path, scope)
    draft = Record(max_position_embeddings=DRAFT, rope_parameters={"rope_type": rope})
    lift(node, path, scope)(Record(text_config=draft) if nested else draft, TARGET)
    if draft.max_position_embeddings not in (DRAFT, TARGET):
        raise NotFoundError(f"{DRAFT} of {TARGET} becomes {draft.max_position_embeddings}")
    return bool(draft.max_position_embeddings == TARGET)


def _condition(init: Function) -> ast.expr:
    """The innermost condition around the call."""
    found = [
        branch
        for branch in ast.walk(init)
        if isinstance(branch, ast.If)
        and any(name == RAISE for statement in branch.body for name, _ in called(statement))
    ]
    if not found or "method" not in names(found[-1].test):
        raise NotFoundError(f"no condition on the method around {RAISE}")
    return found[-1].test


def _met(condition: ast.expr, path: str, method: str) -> bool:
    return bool(evaluate(condition, path, {"self": Record(method=method)}))


PROBE = Probe(
    "draft_rope_length",
    "is the length of a draft's RoPE table raised to the target's?",
    FILES,
    {"raised": "yes", "kept": "no, the table keeps the draft's own length"},
    answer,
    table=True,
)
