"""Whether a dict given to --hf-overrides reaches the config of the draft model."""

from __future__ import annotations

import ast
import functools
from typing import Any

from ..probing.lift import lift
from ..probing.probe import Answer, NotFoundError, Probe, Sources, names
from ..probing.stubs import Record

FILES = ("config/speculative.py",)
VALUES = {
    "applied": "reaches the draft's config",
    "lost": "is applied to the target only",
}


def _passed_on(sources: Sources, override: Any) -> Answer:
    """Answer for one override that sets max_position_embeddings to 128 on a config of 32."""
    [path, *_] = sources.paths(*FILES) or [""]
    if not path:
        raise NotFoundError(f"no {FILES[0]}")
    table = sources.functions(path)
    compose = table.get("SpeculativeConfig.compose_draft_hf_overrides")
    if compose is None:
        return _by_argument(sources, path)

    def base(config: Any, *_arguments: Any, **_options: Any) -> Any:
        return config

    helper = Record(hf_config_override=base)
    scope = {"functools": functools, "SpeculativeConfig": helper}
    applied = table.get("SpeculativeConfig._apply_composed_hf_override")
    if applied is not None:
        helper._apply_composed_hf_override = lift(applied, path, scope)
    config = lift(compose, path, scope)(override)(Record(max_position_embeddings=32))
    length = config.max_position_embeddings
    if length not in (32, 128):
        raise NotFoundError(f"the draft's config comes out with {length}")
    said = f"32 with an override to 128 comes out as {length}"
    return Answer("applied" if length == 128 else "lost", path, compose.lineno, True, said)


def _by_argument(sources: Sources, path: str) -> Answer:
    """Older code names one function as the override of the draft: it cannot know the user's."""
    init = sources.functions(path).get("SpeculativeConfig.__post_init__")
    for node in ast.walk(init) if init is not None else ():
        if isinstance(node, ast.keyword) and node.arg == "hf_overrides":
            found = names(node.value)
            if "hf_config_override" in found and "target_model_config" not in found:
                said = f"hf_overrides={ast.unparse(node.value)}"
                return Answer("lost", path, node.value.lineno, False, said)
            raise NotFoundError(f"hf_overrides={ast.unparse(node.value)[:80]} is not known")
    raise NotFoundError("nothing says what becomes of the draft's hf_overrides")


def with_dict(sources: Sources) -> Answer:
    return _passed_on(sources, {"max_position_embeddings": 128})


def with_callable(sources: Sources) -> Answer:
    def longer(config: Any) -> Any:
        config.max_position_embeddings = 128
        return config

    return _passed_on(sources, longer)


PROBE = Probe(
    "dict_override",
    "does a dict given to --hf-overrides reach the draft?",
    FILES,
    VALUES,
    with_dict,
)
