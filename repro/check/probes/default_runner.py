"""Which model runner a build takes by default, for a dense model and for a GDN hybrid with MTP."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import Any

from ..probing import runner_v2
from ..probing.engine_config import (
    ARCHITECTURES,
    configuration,
    engine_modules,
    globals_of_config,
)
from ..probing.lift import constants, lift
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources
from ..probing.stubs import Logger

FILES = ("config/vllm.py",)
NAME = "VllmConfig.use_v2_model_runner"
HELPERS = ("_is_default_v2_model_runner_model", "_get_v2_model_runner_unsupported_features")
KEYS = tuple(f"{model} pp{pipeline}" for model in ARCHITECTURES for pipeline in (1, 2))


def answer(sources: Sources) -> Answer:
    none = runner_v2.missing(sources)
    if none is not None:
        said = f"{none.detail}: V1 is the only runner"
        return Answer(dict.fromkeys(KEYS, "v1"), none.path, none.line, False, said)
    [path, *_] = sources.paths(*FILES) or [""]
    node = sources.functions(path).get(NAME) if path else None
    if node is None:
        return _by_variable(sources)
    value = {key: _runner(sources, path, node, *key.split(" pp")) for key in KEYS}
    return Answer(value, path, node.lineno, True, ", ".join(f"{k} {v}" for k, v in value.items()))


def _by_variable(sources: Sources) -> Answer:
    """Before the engine chose, the variable did: off unless it is set."""
    for path in sources.paths(runner_v2.ENVIRONMENT):
        for node in ast.walk(sources.tree(path)):
            if (
                isinstance(node, ast.AnnAssign)
                and getattr(node.target, "id", "") == runner_v2.SWITCH
                and isinstance(node.value, ast.Constant)
                and not node.value.value
            ):
                said = ast.unparse(node)
                return Answer(dict.fromkeys(KEYS, "v1"), path, node.lineno, False, said)
    raise NotFoundError(f"neither {NAME} nor a default of {runner_v2.SWITCH}")


def _runner(sources: Sources, path: str, node: Function, model: str, pipeline: str) -> str:
    table = sources.functions(path)
    scope: dict[str, Any] = {**constants(sources, path), **globals_of_config(Logger())}
    _add(scope, table, path, "default_v2_model_runner_architectures")
    config = configuration(model, int(pipeline), aligned=model == "hybrid")
    config._dflash_needs_multi_kv_group = config._is_dflash2_draft = lambda: False
    for helper in HELPERS:
        found = table.get(f"VllmConfig.{helper}")
        if found is not None:
            setattr(config, helper, functools.partial(lift(found, path, scope), config))
    with engine_modules():
        return "v2" if lift(node, path, scope)(config) else "v1"


def _add(scope: dict[str, Any], table: Mapping[str, Function], path: str, name: str) -> None:
    if name in table:
        scope[name] = lift(table[name], path, scope)


PROBE = Probe(
    "default_runner",
    "which model runner is the default?",
    (runner_v2.ENVIRONMENT, *FILES),
    {"v1": "V1", "v2": "V2"},
    answer,
    table=True,
)
