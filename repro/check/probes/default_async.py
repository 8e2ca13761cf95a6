"""Whether asynchronous scheduling is on by default, with MTP, by runner and pipeline length."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..probing.engine_config import configuration, engine_modules, globals_of_config
from ..probing.lift import run
from ..probing.probe import Answer, NotFoundError, Probe, Sources
from ..probing.stubs import Logger

CONFIG = ("config/vllm.py",)
SCHEDULER = ("config/scheduler.py",)
TEST = "self.scheduler_config.async_scheduling"
# "align": the model is a hybrid and prefix caching is on
KEYS = tuple(
    f"{runner} pp{pipeline}{align}"
    for runner in ("v1", "v2")
    for pipeline in (1, 2)
    for align in ("", " align")
)


def answer(sources: Sources) -> Answer:
    """Off where the option's own default says so; else execute the block that decides."""
    fixed = _fixed(sources)
    if fixed is not None:
        return fixed
    for path in sources.paths(*CONFIG):
        for before, block in _blocks(sources.tree(path)):
            value = {key: _decided(path, before, block, key) for key in KEYS}
            said = ", ".join(f"{k} {v}" for k, v in value.items())
            return Answer(value, path, block.orelse[0].lineno, True, said)
    raise NotFoundError("nothing decides async_scheduling where it is not given")


def _fixed(sources: Sources) -> Answer | None:
    path, _, node = sources.function(SCHEDULER, "SchedulerConfig")
    for statement in ast.walk(node):
        if (
            isinstance(statement, ast.AnnAssign)
            and getattr(statement.target, "id", "") == "async_scheduling"
        ):
            default = statement.value
            if isinstance(default, ast.Constant) and default.value is False:
                value = dict.fromkeys(KEYS, "off")
                return Answer(value, path, statement.lineno, False, ast.unparse(statement))
            if isinstance(default, ast.Call):  # Field(default=None)
                default = next((k.value for k in default.keywords if k.arg == "default"), None)
            if isinstance(default, ast.Constant) and default.value is None:
                return None
            raise NotFoundError(f"{ast.unparse(statement)} is not known")
    raise NotFoundError("SchedulerConfig has no async_scheduling")


def _blocks(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], ast.If]]:
    """(statements before it, the `if async … elif it is None …`)."""
    for parent in ast.walk(tree):
        body: Any = getattr(parent, "body", None)
        statements: list[ast.stmt] = body if isinstance(body, list) else []
        for index, statement in enumerate(statements):
            if (
                isinstance(statement, ast.If)
                and ast.unparse(statement.test) == TEST
                and statement.orelse
                and isinstance(statement.orelse[0], ast.If)
                and "None" in ast.unparse(statement.orelse[0].test)
            ):
                yield statements[:index], statement


def _decided(path: str, before: list[ast.stmt], block: ast.If, key: str) -> str:
    runner, pipeline, *align = key.split(" ")
    model = "hybrid" if align else "dense"
    config = configuration(model, int(pipeline[2:]), aligned=bool(align))
    config.use_v2_model_runner = runner == "v2"
    scope: dict[str, Any] = {**globals_of_config(Logger()), "self": config}
    with engine_modules():
        run(_needed(before, block), path, scope)
        run([block], path, scope)
    chosen = config.scheduler_config.async_scheduling
    if chosen not in (True, False):
        raise NotFoundError(f"{key}: async_scheduling stays {chosen}")
    return "on" if chosen else "off"


def _needed(before: list[ast.stmt], block: ast.If) -> list[ast.stmt]:
    """The statements before the block that give it its local names, in order."""
    wanted = _loaded(block)
    needed: list[ast.stmt] = []
    for statement in reversed(before):
        given = {
            n.id
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        if given & wanted:
            needed.append(statement)
            wanted |= _loaded(statement)
    return needed[::-1]


def _loaded(node: ast.AST) -> set[str]:
    return {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    } - {"self", "logger"}


PROBE = Probe(
    "default_async",
    "is asynchronous scheduling on by default?",
    (*CONFIG, *SCHEDULER),
    {"on": "on", "off": "off"},
    answer,
    table=True,
)
