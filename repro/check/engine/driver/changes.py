"""Changes made to an engine on purpose: to show that an oracle can see the fault they bring, and to
give a bisection a boundary where the releases have none.

Each is asked for by name, and what came of it is never said of the engine as it is. A change that
does not find what it changes raises: it was not made.
"""

from __future__ import annotations

from typing import Any, Callable  # noqa: UP035


def unguarded_draft() -> None:
    """Runner V1 drafts past max_model_len: its gate is open, its positions are not masked.

    The slot is what a kernel without bounds would read: behind a row of the block table lies the
    next one; behind the last one nothing that is known, and no slot (-1).
    """
    import torch
    import vllm.v1.spec_decode.llm_base_proposer as proposer
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    name = "eagle_step_update_slot_mapping_and_metadata"
    for holder, attribute in ((GPUModelRunner, "_input_fits_in_drafter"), (proposer, name)):
        if not hasattr(holder, attribute):
            raise RuntimeError(f"this release has no {attribute}")

    def step(**given: Any) -> None:
        positions = given["positions_1d"] + 1
        table = given["block_table_tensor"]
        size = given["block_size"]
        flat = table.reshape(-1)
        slots = []
        for row, position in enumerate(positions.tolist()):
            place = row * table.stride(0) + position // size
            block = int(flat[place]) if place < flat.numel() else None
            slots.append(-1 if block is None else block * size + position % size)
        given["out_clamped_positions"].copy_(positions)
        given["out_slot_mapping"][: len(slots)].copy_(torch.tensor(slots))
        given["seq_lens"] += 1

    GPUModelRunner._input_fits_in_drafter = lambda self, metadata: True
    setattr(proposer, name, step)


def stale_metadata() -> None:
    """Runner V2 builds attention metadata in the first pass of its draft loop, and keeps it."""
    _build_once(slots=False)


def stale_slots() -> None:
    """Runner V2 computes slots and attention metadata in the first pass alone."""
    _build_once(slots=True)


def _build_once(slots: bool) -> None:
    import vllm.v1.worker.gpu.spec_decode.autoregressive.speculator as module
    from vllm.v1.worker.gpu.block_table import BlockTables

    names = ("_multi_step_decode", "_build_draft_attn_metadata")
    speculator: Any = getattr(module, "AutoRegressiveSpeculator", None)
    if not all(hasattr(speculator, name) for name in names):
        raise RuntimeError("this release has no draft loop of runner V2 that builds metadata")
    loop, build = (getattr(speculator, name) for name in names)
    compute = BlockTables.compute_slot_mappings
    passes: list[Any] = []  # of the loop that runs now: what was built in it

    def looped(self: Any, *args: Any, **given: Any) -> Any:
        passes.append(None)
        try:
            return loop(self, *args, **given)
        finally:
            passes.clear()

    def built(self: Any, *args: Any, **given: Any) -> Any:
        if not passes:
            return build(self, *args, **given)
        if passes[0] is None:
            passes[0] = build(self, *args, **given)
        return passes[0]

    def computed(self: Any, *args: Any, **given: Any) -> Any:
        if passes and passes[0] is not None:
            return self.slot_mappings[:, : args[3] if len(args) > 3 else given["num_tokens_padded"]]
        return compute(self, *args, **given)

    speculator._multi_step_decode = looped
    speculator._build_draft_attn_metadata = built
    if slots:
        BlockTables.compute_slot_mappings = computed


def target_length() -> None:
    """Runner V1 drafts as far as its target goes: the gate takes the target's length, and the draft
    gets rotary positions up to there. What a release without the fault of vllm#58080 would do."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    runner: Any = GPUModelRunner
    gate = getattr(runner, "_input_fits_in_drafter", None)
    if gate is None:
        raise RuntimeError("this release has no _input_fits_in_drafter")
    done: set[int] = set()

    def lengthened(self: Any, metadata: Any) -> Any:
        if id(self) not in done:
            done.add(id(self))
            self.effective_drafter_max_model_len = self.max_model_len
            for module in self.drafter.model.modules():
                cache = getattr(module, "cos_sin_cache", None)
                if cache is not None and len(cache) < self.max_model_len:
                    module.max_position_embeddings = self.max_model_len
                    module.cos_sin_cache = module._compute_cos_sin_cache().to(cache)
        return gate(self, metadata)

    runner._input_fits_in_drafter = lengthened


CHANGES: dict[str, Callable[[], None]] = {
    "unguarded_draft": unguarded_draft,
    "stale_metadata": stale_metadata,
    "stale_slots": stale_slots,
    "target_length": target_length,
}


def make(name: str) -> None:
    """Make a change of CHANGES, in an engine that is there."""
    CHANGES[name]()
