"""Writes down what an engine's draft model is fed: positions and slots of every pass."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional  # noqa: UP035

SCHEDULER = "engine_core.engine_core.scheduler"
MODELS = ("drafter.model", "speculator.model")  # of runner V1 and of runner V2


def reach(thing: Any, path: str) -> Any:
    """An attribute of an attribute…; None where there is none: the engine is in other processes."""
    for name in path.split("."):
        thing = getattr(thing, name, None)
    return thing


def short_name(request: str) -> str:
    """The name that a job gave a request: without its batch, and an ending of the engine's."""
    return re.sub(r"-[0-9a-f]{6,32}$", "", request.split("/", 1)[-1])


class Drafts:
    """Hooks the draft model. `add` writes an observation; `step` says which step it is."""

    def __init__(
        self, core: Any, runner: Any, add: Callable[..., None], step: Callable[[], list[Any]]
    ) -> None:
        self.core, self.add, self.step = core, add, step
        model = next((m for p in MODELS if (m := reach(runner, p)) is not None), None)
        hook = getattr(model, "register_forward_pre_hook", None)
        if hook is None:
            raise RuntimeError("this engine has no draft model that can be watched")
        hook(self.seen, with_kwargs=True)

    def seen(self, module: Any, args: Any, given: dict[str, Any]) -> None:
        """One pass of the draft model is about to be made."""
        del module, args
        batch, step = self.step()
        metadata = self.metadata()
        if not batch or metadata is None:
            return  # a warm-up
        blocks = self.blocks()
        positions = given["positions"].tolist()
        slots = metadata.slot_mapping.tolist()
        starts = metadata.query_start_loc.tolist()
        owner = {ids[0]: request for request, ids in blocks.items() if ids}
        rows = []
        for row, (first, last) in enumerate(zip(starts, starts[1:])):  # noqa: B905, RUF007
            request = owner.get(int(metadata.block_table[row, 0]))
            if last > first:  # others are padding
                rows.append([request, positions[first:last], slots[first:last]])
        self.add("draft", batch=batch, step=step, rows=rows, blocks=blocks)

    def metadata(self) -> Optional[Any]:  # noqa: UP045
        from vllm.forward_context import get_forward_context

        by_layer = get_forward_context().attn_metadata
        if not isinstance(by_layer, dict):
            return None
        names = ("slot_mapping", "query_start_loc", "block_table")
        found = (m for m in by_layer.values() if all(hasattr(m, name) for name in names))
        return next(found, None)

    def blocks(self) -> dict[str, list[int]]:
        """Block ids of every request that is running, in the first group of the cache."""
        scheduler = reach(self.core, SCHEDULER)
        manager = scheduler.kv_cache_manager
        return {
            short_name(request): [int(b) for b in manager.get_block_ids(request)[0]]
            for request in scheduler.requests
        }
