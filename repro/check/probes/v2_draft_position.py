"""Which positions runner V2's draft loop reaches near the end."""

from __future__ import annotations

from typing import Any

from ..probing import runner_v2
from ..probing.lift import lift, parameters
from ..probing.probe import Answer, NotFoundError, Probe, Sources
from ..probing.triton_stub import Language, OutOfBoundsError, Pointer, integer_range

LENGTH, HIDDEN = 32, 4


def answer(sources: Sources) -> Answer:
    """The kernel that advances positions, four steps from two before the end."""
    if (none := runner_v2.missing(sources)) is not None:
        return none
    for path, name, node in runner_v2.drafter_functions(sources):
        if name.startswith("_update_") and name.endswith("inputs_kernel"):
            position, length = [LENGTH - 2], [LENGTH - 1]
            given = {n: _argument(n, position, length) for n in parameters(node)}
            if "positions_ptr" not in given or "seq_lens_ptr" not in given:
                raise NotFoundError(f"{name} has no positions_ptr and seq_lens_ptr")
            kernel = lift(node, path, {"tl": Language(), "range": integer_range})
            seen = []
            for _ in range(4):
                try:
                    kernel(**given)
                except OutOfBoundsError as error:
                    return Answer("past the end", path, node.lineno, True, str(error))
                seen.append(int(position[0]))
            said = f"four steps from {LENGTH - 2} of {LENGTH}: {', '.join(map(str, seen))}"
            kept = max(seen) < LENGTH and seen[0] == LENGTH - 1
            value = "clamped" if kept else "past the end"
            return Answer(value, path, node.lineno, True, said)
    raise NotFoundError("no kernel _update_…inputs_kernel in a drafter of runner V2")


def _argument(name: str, position: list[int], length: list[int]) -> Any:
    known = {
        "positions_ptr": Pointer(position),
        "seq_lens_ptr": Pointer(length),
        "current_draft_step_ptr": Pointer([0]),
        "max_model_len": LENGTH,
        "hidden_size": HIDDEN,
        "num_speculative_steps": 99,
        "BLOCK_SIZE": HIDDEN,
        "ADVANCE_DRAFT_POSITIONS": True,
    }
    if name in known:
        return known[name]
    if name.endswith("_ptr"):
        return Pointer([0] * 512)
    return HIDDEN if name.endswith("stride") else 1


PROBE = Probe(
    "v2_draft_position",
    "which positions does runner V2 draft at, near the end?",
    (runner_v2.ENVIRONMENT, *runner_v2.DRAFTERS),
    {
        "clamped": "none past the last",
        "past the end": "positions past the last",
        runner_v2.NONE: "there is no runner V2",
    },
    answer,
)
