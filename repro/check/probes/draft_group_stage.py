"""Whether the draft's KV group is still known as that on a stage that has no layer of it."""

from __future__ import annotations

from typing import Any

from ..probing.lift import lift
from ..probing.probe import Answer, NotFoundError, Probe, Sources
from ..probing.stubs import Record
from .draft_group import PLANNING

PROJECT = "_project_kv_cache_groups_to_worker"


class _Uniform:
    """Stands for groups of layers with different specs; none here."""


def _group(names: list[str], spec: Any, is_eagle_group: bool = False, **_others: Any) -> Record:
    return Record(
        layer_names=names,
        kv_cache_spec=spec,
        is_eagle_group=is_eagle_group,
        host_resident=False,
        enable_kv_transfer=True,
        role=None,
    )


def answer(sources: Sources) -> Answer:
    """Project two groups onto a stage with a layer of the first and none of the draft's, and onto
    one that has both, where the flag must stay."""
    path, _, node = sources.function(PLANNING, PROJECT)
    scope = {"KVCacheGroupSpec": _group, "UniformTypeKVCacheSpecs": _Uniform}
    project = lift(node, path, scope)

    def flags(layers: dict[str, Any]) -> list[bool]:
        groups = [_group(["attention"], 1), _group(["mtp"], 1, True)]
        return [bool(group.is_eagle_group) for group in project(groups, layers)]

    last, first = flags({"attention": 1, "mtp": 1}), flags({"attention": 1})
    said = f"(group, draft's group): {last} on a stage with its layer, {first} on one without"
    if first == [False, True]:
        return Answer("kept", path, node.lineno, True, said)
    if first == [False, False]:
        return Answer("lost", path, node.lineno, True, said)
    raise NotFoundError(said)


PROBE = Probe(
    "draft_group_stage",
    "is the draft's KV group known as that on a pipeline stage without its layer?",
    PLANNING,
    {"kept": "yes", "lost": "no"},
    answer,
)
