"""Of which configuration the MTP layers of every model family are built.

`draft_rope_source` asks Qwen's alone: the files of the families lie far apart in a wheel, over a
stretch of up to 1.5 MB. So this one is in no shipped case.
"""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

from ..probing.probe import Answer, NotFoundError, Probe, Sources, called, names
from .draft_rope_source import DRAFT, VALUES, asked_in

FILES = ("model_executor/models/*_mtp.py", "models/*/mtp.py")
LAYERS = ("DecoderLayer", "Block", "Attention")
HANDED_ON = "with_hf_config"


def answer(sources: Sources) -> Answer:
    value: dict[str, str] = {}
    silent: list[str] = []
    first: tuple[str, int] | None = None
    for path in sources.paths(*FILES):
        kinds, line = _kinds(sources, path)
        if not kinds:
            silent.append(_family(path))
            continue
        value[_family(path)] = kinds.pop() if len(kinds) == 1 else "both"
        first = first or (path, line)
    if first is None:
        raise NotFoundError(f"none of {', '.join(FILES)} asks for a configuration")
    of = {
        kind: ", ".join(family for family, whose in value.items() if whose == kind)
        for kind in PROBE.values
    }
    said = "; ".join(f"{kind}: {families}" for kind, families in of.items() if families)
    if silent:
        said += f"; asks for none: {', '.join(silent)}"
    return Answer(value, *first, False, said)


def _kinds(sources: Sources, path: str) -> tuple[set[str], int]:
    """Whose configurations decide, and the first line that asks for one: the function that builds
    the layer decides, and where it is given one, the file."""
    nodes = [n for n in sources.functions(path).values() if isinstance(n, ast.FunctionDef)]
    asked = {id(node): list(asked_in(node, path)) for node in nodes}
    every = [one for node in nodes for one in asked[id(node)]]
    if not every:
        return set(), 0
    lines = [line for _, line, _ in every]
    for node in nodes:
        handed = [call for name, call in called(node) if name == HANDED_ON]
        if any(DRAFT in names(call) for call in handed):
            return {"draft"}, min(lines)  # everything below is given the draft's as the target's
    building = [n for n in nodes if any(name.endswith(LAYERS) for name, _ in called(n))]
    deciding = [one for node in building for one in asked[id(node)]] or every
    return {kind for kind, _, _ in deciding}, min(lines)


def _family(path: str) -> str:
    """`deepseek` of `…/models/deepseek_mtp.py`, `hy_v4/nvidia` of `models/hy_v4/nvidia/mtp.py`."""
    parts = PurePosixPath(path).parts
    name = parts[-1].removesuffix(".py").removesuffix("_mtp")
    if name != "mtp":
        return name
    return "/".join(parts[parts.index("models") + 1 : -1])


PROBE = Probe(
    "draft_rope_families",
    "of whose configuration are the MTP layers and their RoPE of each model family built?",
    FILES,
    {**VALUES, "both": "it asks for both, and which its layers are given was not followed"},
    answer,
    table=True,
)
