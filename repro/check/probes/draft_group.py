"""Whether the KV group that holds the layer of an MTP draft is known as the draft's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ..probing.lift import evaluate, lift, parameters, run
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources, called, names
from ..probing.stubs import Record

PLANNING = ("v1/core/kv_cache_planning.py", "v1/core/kv_cache_utils.py")
SPECS = ("v1/kv_cache_interface.py",)
FLAG, MARK, DRAFT = "is_eagle_group", "_annotate_eagle_groups", "is_draft"


def answer(sources: Sources) -> Answer:
    """Let each place that marks groups do so for a hybrid of Qwen's kind with MTP."""
    path, _, spec = sources.function(SPECS, "KVCacheGroupSpec")
    if FLAG not in ast.unparse(spec):
        return Answer("not known", path, spec.lineno, False, f"a group has no {FLAG}")
    for path in sources.paths(*PLANNING):
        tree, table = sources.tree(path), sources.functions(path)
        marking = [(name, call) for name, call in called(tree) if name.startswith(MARK)]
        if marking:
            known = {_marked(path, table, table[name], call) for name, call in marking}
            if len(known) != 1:
                raise NotFoundError(f"one of the calls of {MARK} finds the draft, another does not")
            return _said(path, table[marking[-1][0]].lineno, known.pop(), marking[-1][0])
        for branch in _by_layer(tree):
            scope = _scope()
            run([branch], path, scope)
            return _said(path, branch.lineno, _known(scope), f"layers with {DRAFT}")
    raise NotFoundError(f"nothing sets {FLAG}")


def _said(path: str, line: int, known: bool, how: str) -> Answer:
    said = f"{how}: the group with the layer of the draft is {'' if known else 'not '}marked"
    return Answer("known" if known else "not known", path, line, True, said)


def _marked(path: str, table: dict[str, Function], node: Function, call: ast.Call) -> bool:
    scope = _scope()
    helpers = names(call) | names(node)
    for name, helper in table.items():
        if name in helpers and name != getattr(node, "name", ""):
            scope[name] = lift(helper, path, scope)
    given = {name: scope[name] for name in parameters(node) if name in scope}
    for keyword in call.keywords:
        if keyword.arg is not None and keyword.arg not in given:
            given[keyword.arg] = evaluate(keyword.value, path, scope)
    lift(node, path, scope)(**given)
    return _known(scope)


def _by_layer(tree: ast.AST) -> Iterator[ast.If]:
    """Branches that set the flag by what a layer says of itself."""
    for branch in ast.walk(tree):
        if isinstance(branch, ast.If) and {FLAG, DRAFT} <= names(branch):
            yield branch


def _scope() -> dict[str, Any]:
    """Three layers, of which the last is the draft's, in a group of attention and one of state."""
    layers = {name: Record(is_draft=name == "mtp") for name in ("attention", "state", "mtp")}
    groups = [
        Record(layer_names=names, kv_cache_spec=layers[names[0]], is_eagle_group=False)
        for names in (["attention", "mtp"], ["state"])
    ]
    speculative = Record(method="mtp", use_eagle=lambda: True, use_eagle_block_drop=lambda: True)
    config = Record(
        speculative_config=speculative,
        model_config=Record(hf_config=Record(model_type="qwen3_5")),
    )
    return {
        "vllm_config": config,
        "spec_config": speculative,
        "kv_cache_spec": layers,
        "kv_cache_groups": groups,
        "merged_kv_cache_specs": layers,
        "global_kv_cache_groups": groups,
        "iter_layer_specs": lambda spec: [spec],
        "_warn_if_unannotated_eagle_mamba": lambda *_arguments: None,
    }


def _known(scope: dict[str, Any]) -> bool:
    marks = tuple(bool(group.is_eagle_group) for group in scope["kv_cache_groups"])
    if marks not in ((True, False), (False, False)):
        raise NotFoundError(f"of a group with the draft and one without, {marks} are marked")
    return marks[0]


PROBE = Probe(
    "draft_group",
    "is the KV group of an MTP draft known as the draft's?",
    (*PLANNING, *SPECS),
    {"known": "yes", "not known": "no, no group is: each is treated as if it held drafts"},
    answer,
)
