"""Whether prefix caching is on by default, for a dense model and for a hybrid."""

from __future__ import annotations

import ast
from typing import Any

from ..probing.engine_config import ARCHITECTURES
from ..probing.lift import evaluate, lift
from ..probing.probe import Answer, NotFoundError, Probe, Sources, assigned
from ..probing.stubs import Logger, Record

ARGUMENTS = ("engine/arg_utils.py",)
MODEL = ("config/model.py",)
SUPPORTED = "ModelConfig.is_prefix_caching_supported"


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
    raise NotFoundError("no `default_prefix_caching = …`")


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


PROBE = Probe(
    "default_prefix_caching",
    "is prefix caching on by default?",
    (*ARGUMENTS, *MODEL),
    {"on": "on", "off": "off"},
    answer,
    table=True,
)
