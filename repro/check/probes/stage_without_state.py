"""What becomes of a group of recurrent layers of which a pipeline stage has none."""

from __future__ import annotations

from ..probing.lift import lift
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources
from ..probing.stubs import Record

FILES = ("v1/worker/mamba_utils.py",)
GROUPS, LAYER = "get_mamba_groups", "_get_mamba_spec_for_layer"


class _Mamba:
    block_size = 8


class _Uniform:
    """Stands for groups of layers with different specs; none here."""


def answer(sources: Sources) -> Answer:
    """Ask for the groups of a stage that has no layer of one, and of one that has none at all."""
    path, _, node = sources.function(FILES, GROUPS)
    helper = sources.functions(path).get(LAYER)
    listed = _groups(path, node, helper, [["m0"], []])
    if isinstance(listed, str) or 1 not in listed:
        raise NotFoundError(f"of a stage with recurrent layers, {GROUPS} says {listed}")
    none = _groups(path, node, helper, [[]])
    said = f"a group without a layer: {'kept' if 2 in listed else 'left out'}; a stage with none: "
    if none == "AssertionError":
        return Answer("left out", path, node.lineno, True, f"{said}AssertionError")
    if 2 in listed and not isinstance(none, str):
        return Answer("kept", path, node.lineno, True, f"{said}groups {sorted(none)}")
    raise NotFoundError(f"{said}{none}")


def _groups(
    path: str, node: Function, helper: Function | None, states: list[list[str]]
) -> set[int] | str:
    """Ids of the recurrent groups, with a group of attention as 0; or the name of an error."""
    scope = {"MambaSpec": _Mamba, "UniformTypeKVCacheSpecs": _Uniform}
    if helper is not None:
        scope[LAYER] = lift(helper, path, scope)  # type: ignore[assignment]
    spec = _Mamba()
    groups = [Record(kv_cache_spec=Record(), layer_names=["a0"])]
    groups += [Record(kv_cache_spec=spec, layer_names=layers) for layers in states]
    try:
        found = lift(node, path, scope)(Record(kv_cache_groups=groups))
    except AssertionError as error:
        return type(error).__name__
    ids = found[0] if isinstance(found, tuple) else [i for each in found.values() for i in each]
    return set(ids)


PROBE = Probe(
    "stage_without_state",
    "what becomes of a group of recurrent layers of which a pipeline stage has none?",
    FILES,
    {
        "kept": "it stays, without layers",
        "left out": "it is left out, and a stage without any recurrent layer is refused",
    },
    answer,
)
