"""Of which configuration Qwen's MTP layers are built: the target's, or the draft's own.

Runner V2 has no gate. A draft built of its own configuration then reads past a RoPE table of its
native length, and one built of the target's does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..probing.probe import Answer, NotFoundError, Probe, Sources

# one folder of hundreds of files, far from all else in a wheel: these two lie side by side
FILES = (
    "model_executor/models/qwen3_5_mtp.py",
    "model_executor/models/qwen3_next_mtp.py",
)
CONFIGS = {"hf_config", "hf_text_config"}
TARGET, DRAFT = "model_config", "draft_model_config"


def answer(sources: Sources) -> Answer:
    value: dict[str, str] = {}
    seen: list[str] = []
    places: list[tuple[str, int]] = []
    for path in sources.paths(*FILES):
        name = path.rpartition("/")[2].removesuffix("_mtp.py")
        found = origins(sources, path)
        if not found:
            raise NotFoundError(f"{path} asks for no {' or '.join(sorted(CONFIGS))}")
        kinds = {kind for kind, _, _ in found}
        if len(kinds) != 1:
            raise NotFoundError(f"{path} takes configurations of both: {found[0][2]}")
        value[name] = kinds.pop()
        seen.append(f"{name}: {found[0][2]}")
        places.append((path, found[0][1]))
    if not value:
        raise NotFoundError(f"none of {', '.join(FILES)}")
    return Answer(value, *places[0], False, "; ".join(seen))


def origins(sources: Sources, path: str) -> list[tuple[str, int, str]]:
    """(whose, line, source) of each configuration of a model that a file asks for."""
    nodes = sources.functions(path).values()
    found = [one for n in nodes if isinstance(n, ast.FunctionDef) for one in asked_in(n, path)]
    return sorted(found, key=lambda one: one[1])


def asked_in(node: ast.FunctionDef, path: str) -> Iterator[tuple[str, int, str]]:
    """(whose, line, source) of each configuration of a model that a function asks for."""
    local = {
        target.id: statement.value
        for statement in ast.walk(node)
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr in CONFIGS:
            yield _owner(inner.value, local, path), inner.lineno, ast.unparse(inner)


def _owner(expression: ast.expr, local: dict[str, ast.expr], path: str) -> str:
    for _ in range(8):  # a name of a name
        if isinstance(expression, ast.Attribute) and expression.attr == DRAFT:
            return "draft"
        if isinstance(expression, ast.Attribute) and expression.attr == TARGET:
            return "target"
        if not isinstance(expression, ast.Name) or expression.id not in local:
            break
        expression = local[expression.id]
    raise NotFoundError(f"{path}: whose configuration {ast.unparse(expression)[:80]} is")


VALUES = {
    "target": "the target's: an override applies",
    "draft": "the draft's own, with its native length",
}
PROBE = Probe(
    "draft_rope_source",
    "of whose configuration are Qwen's MTP layers and their RoPE built?",
    FILES,
    VALUES,
    answer,
    table=True,
)
