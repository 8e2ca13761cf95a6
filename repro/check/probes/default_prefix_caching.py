"""Whether prefix caching is on by default, for a dense model and for a hybrid.

Up to 0.11.0 the option is set in a branch for what generates, and what is done for hybrids
overrules that later, in a file far from all others in the wheel.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import Any

from ..probing.engine_config import ARCHITECTURES
from ..probing.lift import evaluate, lift, run
from ..probing.probe import Answer, NotFoundError, Probe, Sources, assigned, names
from ..probing.stubs import Logger, Record

ARGUMENTS = ("engine/arg_utils.py",)
MODEL = ("config/model.py",)
SUPPORTED = "ModelConfig.is_prefix_caching_supported"
OVERRULING = ("model_executor/models/config.py",)
VERIFY = "verify_and_update_config"
HYBRID, STATE = "HybridAttentionMambaModelConfig", "MambaModelConfig"
OPTION = "enable_prefix_caching"


def answer(sources: Sources) -> Answer:
    """Evaluate the default, with the model's own function where it asks for it."""
    for path in sources.paths(*ARGUMENTS):
        for statement in assigned(sources.tree(path), "default_prefix_caching"):
            if isinstance(statement.value, ast.Constant):
                continue
            value = {
                model: _default(sources, path, statement.value, model) for model in ARCHITECTURES
            }
            said = ast.unparse(statement)
            return Answer(value, path, statement.lineno, True, said)
    return _overruled(sources)


def _default(sources: Sources, path: str, expression: ast.expr, model: str) -> str:
    hybrid = model == "hybrid"
    config = Record(
        attn_type="hybrid" if hybrid else "decoder",
        is_hybrid=hybrid,
        pooler_config=None,
        is_attention_free=False,
        is_encoder_decoder=False,
    )
    for where in sources.paths(*MODEL):
        supported = sources.functions(where).get(SUPPORTED)
        if supported is not None:
            lifted = lift(supported, where, {"logger": Logger()})
            config.is_prefix_caching_supported = lifted(config)
    scope: dict[str, Any] = {"model_config": config}
    return "on" if evaluate(expression, path, scope) else "off"


def _overruled(sources: Sources) -> Answer:
    """Execute the branch that sets the option where it is not given, then what is done for a model
    with recurrent state."""
    for path in sources.paths(*ARGUMENTS):
        for branch in _branches(sources.tree(path)):
            arguments = Record(**{OPTION: None, "enable_prompt_embeds": False})
            model = Record(runner_type="generate", pooler_config=None)
            run([branch], path, {"self": arguments, "model_config": model, "logger": Logger()})
            first = getattr(arguments, OPTION)
            where, line, last = _after(sources, first)
            value = {"dense": _said(first), "hybrid": _said(last)}
            return Answer(
                value, where, line, True, f"set {first} at {path}:{branch.lineno}, {last} for state"
            )
    raise NotFoundError(f"no `default_prefix_caching = …`, and no branch that sets {OPTION}")


def _branches(tree: ast.Module) -> Iterator[ast.If]:
    """Branches by the kind of runner that set the option."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.If)
            and "runner_type" in names(node.test)
            and assigned(node, OPTION)
        ):
            yield node


def _after(sources: Sources, option: Any) -> tuple[str, int, Any]:
    """(path, line, option) after what a hybrid does first, which is what any recurrent state does.

    What follows there is about sizes of pages, and is not executed."""
    path, _, hybrid = sources.function(OVERRULING, f"{HYBRID}.{VERIFY}")
    _, _, state = sources.function(OVERRULING, f"{STATE}.{VERIFY}")
    cache = Record(**{OPTION: option})
    config = Record(
        cache_config=cache,
        model_config=Record(architecture=ARCHITECTURES["hybrid"]),
        compilation_config=Record(cudagraph_mode="set"),
    )
    scope: dict[str, Any] = {
        "vllm_config": config,
        "envs": Record(VLLM_USE_V1=True),
        "logger": Logger(),
    }
    known = functools.partial(lift(state, path, scope), None)
    scope[STATE] = Record(**{VERIFY: known})
    calls = [
        statement
        for statement in hybrid.body
        if isinstance(statement, ast.Expr) and STATE in names(statement)
    ]
    if not calls:
        raise NotFoundError(f"{HYBRID} does not do what {STATE} does")
    run(calls, path, scope)
    lines = [statement.lineno for statement in assigned(state, OPTION)]
    return path, max(lines, default=state.lineno), getattr(cache, OPTION)


def _said(option: Any) -> str:
    if option not in (True, False):
        raise NotFoundError(f"{OPTION} comes out as {option!r}"[:80])
    return "on" if option else "off"


PROBE = Probe(
    "default_prefix_caching",
    "is prefix caching on by default?",
    (*ARGUMENTS, *MODEL),
    {"on": "on", "off": "off"},
    answer,
    table=True,
    # the first release that decides it in one place has this file
    without={"config/vllm.py": OVERRULING},
)
