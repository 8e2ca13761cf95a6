"""Which row of a block table runner V2's copy of recurrent state reads."""

from __future__ import annotations

from typing import Any

from ..probing import runner_v2
from ..probing.lift import lift, parameters
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources
from ..probing.triton_stub import Language, Pointer, integer_range
from .state_copy_tables import FILES as HYBRID
from .state_copy_tables import NO_COPY, no_copy

FILES = ("v1/worker/mamba_utils.py",)
KERNEL = "postprocess_mamba_fused_kernel"
COPY = "_copy_mamba_state_block"
MAPPING = [5, 3]  # batch row → slot of the request


def answer(sources: Sources) -> Answer:
    """Run the copy's kernel for batch row 0, whose request lives in slot 5."""
    if (none := runner_v2.missing(sources)) is not None:
        return none
    for path in sources.paths(*FILES):
        node = sources.functions(path).get(KERNEL)
        if node is not None and "HAS_IDX_MAPPING" in parameters(node):
            return _row(path, node)
    return no_copy(sources, sources.paths(*HYBRID), KERNEL)


def _row(path: str, node: Function) -> Answer:
    copied: list[tuple[Any, ...]] = []

    def copy(*arguments: Any, **_options: Any) -> None:
        copied.append(arguments)

    scope = {"tl": Language(), "range": integer_range, COPY: copy}
    lift(node, path, scope)(**{name: _argument(name) for name in parameters(node)})
    if not copied:
        raise NotFoundError(f"{KERNEL} copies nothing for a request that accepted drafts")
    row = int(copied[0][1])
    value = {MAPPING[0]: "request", 0: "batch"}.get(row)
    said = f"idx_mapping {MAPPING}, program 0: row {row}"
    if value is None:
        raise NotFoundError(said)
    return Answer(value, path, node.lineno, True, said)


def _argument(name: str) -> Any:
    known = {
        "idx_mapping_ptr": Pointer(list(MAPPING)),
        "num_accepted_tokens_ptr": Pointer([3] * 16),
        "num_computed_tokens_ptr": Pointer([9] * 16),
        "num_reqs": 2,
        "block_size": 8,
        "HAS_IDX_MAPPING": True,
        "PRECOMPUTED_NEW_COMPUTED": True,
        "CONV_STATE_DIM_FIRST": False,
    }
    if name in known:
        return known[name]
    return Pointer([0] * 16) if name.endswith("_ptr") else 1


PROBE = Probe(
    "state_copy_row",
    "which row of the block table does the copy of recurrent state read?",
    (runner_v2.ENVIRONMENT, *FILES, *HYBRID, "v1/worker/gpu/model_runner.py"),
    {
        "batch": "the request's place in the batch",
        "request": "the request's own slot",
        NO_COPY: "runner V2 does not copy recurrent state here",
        runner_v2.NONE: "there is no runner V2",
    },
    answer,
)
