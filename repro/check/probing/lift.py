"""Lift a function, expression or statement out of a build's file and make it callable by itself."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .probe import Function, NotFoundError, Sources
from .stubs import Ghosts


def lift(node: Function, path: str, namespace: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of a node, without decorators and annotations, so that no name of torch, vLLM or
    Triton is needed to define it. Defaults are evaluated in `namespace`, as the body is."""
    if isinstance(node, ast.ClassDef):
        raise NotFoundError(f"{node.name} is a class")
    alone = copy.deepcopy(node)
    for inner in ast.walk(alone):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            inner.decorator_list = []
            inner.returns = None
            spec = inner.args
            every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
            for argument in filter(None, every):
                argument.annotation = None
    scope = namespace if isinstance(namespace, Ghosts) else dict(namespace)
    run([alone], path, scope)
    lifted: Callable[..., Any] = scope[node.name]
    return lifted


def run(statements: Sequence[ast.stmt], path: str, namespace: dict[str, Any]) -> None:
    """Execute statements of a file in `namespace`, which they change."""
    module = ast.Module(list(statements), [])
    ast.fix_missing_locations(module)
    exec(compile(module, path, "exec"), namespace)  # noqa: S102 - what the sandbox is for


def evaluate(expression: ast.expr, path: str, namespace: dict[str, Any]) -> Any:
    """The value of an expression of a file."""
    code = compile(ast.Expression(expression), path, "eval")
    return eval(code, namespace)  # noqa: S307 - what the sandbox is for


def parameters(node: Function) -> list[str]:
    """Names of a function's parameters, in order, without a leading `self`."""
    if isinstance(node, ast.ClassDef):
        raise NotFoundError(f"{node.name} is a class")
    spec = node.args
    found = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return found[1:] if found[:1] == ["self"] else found


def constants(sources: Sources, path: str) -> dict[str, Any]:
    """Constants of a module that are literals, or frozensets and tuples of literals."""
    found: dict[str, Any] = {}
    for statement in sources.tree(path).body:
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            continue
        if not isinstance(target, ast.Name) or not target.id.isupper():
            continue
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "frozenset":
            value = value.args[0] if value.args else ast.Tuple([], ast.Load())
            kind: Any = frozenset
        else:
            kind = None
        try:
            literal = ast.literal_eval(value)
        except (ValueError, TypeError):
            continue
        found[target.id] = literal if kind is None else kind(literal)
    return found
