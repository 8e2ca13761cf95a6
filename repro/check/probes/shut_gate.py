"""What runner V1 proposes for a batch whose longest request does not fit the draft."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..probing.probe import Answer, NotFoundError, Probe, Sources, called, names

FILES = ("v1/worker/gpu_model_runner.py",)
GATE = "input_fits_in_drafter"
GATES = {GATE, f"_{GATE}"}
PROPOSES = "propose"
# what the runner has with asynchronous scheduling only
ASYNC = "valid_sampled_token_count_event"


def answer(sources: Sources) -> Answer:
    [path, *_] = sources.paths(*FILES) or [""]
    gated = [
        node
        for node in (sources.functions(path).values() if path else ())
        if isinstance(node, ast.FunctionDef) and GATES & names(node) and _branches(node)
    ]
    if not gated:
        raise NotFoundError(f"no branch on {GATE}")
    found: tuple[str, int] | None = None
    for node in gated:
        for statement, conditions in _guarded(node, frozenset()):
            if not isinstance(statement, ast.Assign) or not _drafts(statement):
                continue
            made_by = {name for name, _ in called(statement.value)}
            if "zeros" in made_by:
                value = "async zeros" if ASYNC in conditions else "zeros"
                if found is None or found[0] == "async zeros":
                    found = value, statement.lineno
            elif GATES & conditions and not any(PROPOSES in name for name in made_by):
                raise NotFoundError(f"{ast.unparse(statement)[:80]} is not known")
    if found is not None:
        return Answer(found[0], path, found[1], False, "torch.zeros(...).expand(...) for drafts")
    line = min(_branches(gated[0]))
    return Answer("no drafts", path, line, False, "no branch of the gate fills drafts in")


def _branches(node: ast.AST) -> list[int]:
    """Lines of the conditions that ask the gate."""
    return [
        inner.lineno
        for inner in ast.walk(node)
        if isinstance(inner, ast.If) and names(inner.test) & GATES
    ]


def _drafts(statement: ast.Assign) -> bool:
    return any(
        isinstance(t, ast.Attribute) and "draft_token_ids" in t.attr for t in statement.targets
    )


def _guarded(node: ast.AST, conditions: frozenset[str]) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Every node below, with the names in the conditions around it."""
    around = conditions | names(node.test) if isinstance(node, ast.If) else conditions
    for child in ast.iter_child_nodes(node):
        yield child, around
        yield from _guarded(child, around)


PROBE = Probe(
    "shut_gate",
    "what does runner V1 propose when the gate is shut?",
    FILES,
    {
        "no drafts": "nothing: the batch decodes without speculation",
        "async zeros": "token 0 for every draft with asynchronous scheduling, else nothing",
        "zeros": "token 0 for every draft",
    },
    answer,
)
