"""Scenario `mtp_tail`: drafts near the end of the longest sequence an engine serves (vllm#40756).

A request grows through one speculative step that fits and lands on `seq_len`; the step there is the
one in question. Admission asks for one more slot or for all k; nothing behind it checks again,
unless the variant says so. This file holds the declaration and the closed form, `mtp_tail_run.py`
the program. What the parameters alone imply:

own_step     every draft gets a pass of its own: slots seq_len ... seq_len + k - 1 are written, so
             an overrun needs L - k < seq_len <= L - 1 (the report's interval, empty at k = 1)
target_pass  vLLM's way: the first draft rides on the pass over target tokens, the loop writes
             seq_len ... seq_len + k - 2, so an overrun needs L - k + 1 < seq_len <= L - 1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..records import Kind, Outcome, Prediction, Scalar
from .declare import Parameter
from .tensor_names import PAGED, SERVED

if TYPE_CHECKING:
    from ..ops import Ops

WIDTH = 16  # elements of a slot: HEADS x HEAD_DIM of the toy model
GARBAGE_BLOCK = 0x55555555  # what the arena behind the last table row holds

PARAMETERS: Mapping[str, Parameter] = {
    "max_model_len": Parameter(64, int, low=8, high=4096, doc="slots of a sequence (L)"),
    "block_size": Parameter(16, int, low=1, high=256, doc="tokens in a KV block"),
    "num_speculative_tokens": Parameter(3, int, low=1, high=32, doc="drafts a step (k)"),
    "seq_len": Parameter(62, int, low=4, high=4095, doc="tokens when the step in question drafts"),
    "placement": Parameter(
        "unmapped",
        str,
        choices=("unmapped", "neighbour", "garbage_size"),
        doc="what lies past the slots: nothing, another request, or stale memory",
    ),
    "first_draft": Parameter(
        "own_step",
        str,
        choices=("own_step", "target_pass"),
        doc="whether the first draft has a pass of its own (the report) or not (vLLM)",
    ),
    "table_align": Parameter(
        1,
        int,
        choices=(1, 128),
        doc="block-table rows are rounded up to this many tokens (vLLM: 128 from 0.27.0)",
    ),
    "neighbour_len": Parameter(20, int, low=4, high=2048, doc="prompt of the other request"),
    "neighbour_new": Parameter(16, int, low=1, high=256, doc="tokens the other request makes"),
    "device_gib": Parameter(80, int, low=1, high=1024, doc="memory a further allocation may ask"),
    "seed": Parameter(1, int, low=0, high=2**31 - 1, doc="of the prompts"),
}
SETTINGS: Mapping[str, Parameter] = {
    "admit": Parameter(
        "one_token",
        str,
        choices=("one_token", "all_drafts"),
        doc="what must fit for a speculative step: seq_len + 1 or seq_len + k",
    ),
    "drafts": Parameter(
        "all", str, choices=("all", "clamp_to_remaining"), doc="how many drafts a step makes"
    ),
    "at_limit": Parameter(
        "ignore",
        str,
        choices=("ignore", "pad", "clamp"),
        doc="what the draft kernel does at the limit: nothing, pad (vLLM V1), clamp (vLLM V2)",
    ),
    "routed": Parameter(
        False, bool, doc="record the experts each draft token was routed to, by slot (MoE)"
    ),
}
UNITS: Mapping[str, tuple[str, ...]] = {
    **PAGED,
    "routed_experts": ("block",),
    "routed_weights": ("block",),
}
TENSORS: tuple[str, ...] = (*SERVED, "experts", "routed_experts", "routed_weights", "weights")


def contradiction(
    point: Mapping[str, Scalar], settings: Mapping[str, Scalar]
) -> tuple[str, str] | None:
    """The key and the sentence of a contradiction between parameters, or None."""
    length, size, seq_len, drafts = (
        int(point[name])
        for name in ("max_model_len", "block_size", "seq_len", "num_speculative_tokens")
    )
    if length % size:
        return "block_size", f"{size} does not divide max_model_len {length}"
    if seq_len > length:
        return "seq_len", f"{seq_len} exceeds max_model_len {length}"
    if seq_len < drafts + 3:
        return "seq_len", (
            f"{seq_len} is too short: a step of {drafts} drafts that fits comes first, "
            f"so at least {drafts + 3}"
        )
    if point["placement"] == "neighbour":
        longest = int(point["neighbour_len"]) + int(point["neighbour_new"])
        least = 2 * drafts + 4
        if int(point["neighbour_new"]) < least:
            return "neighbour_new", (
                f"{point['neighbour_new']} is too few to see its acceptance after the overrun: "
                f"at least {least}"
            )
        if longest + drafts > length:
            return "neighbour_new", (
                f"the other request must stay clear of the end: {longest} + {drafts} > {length}"
            )
    return None


def columns(point: Mapping[str, Scalar]) -> int:
    """Columns of a block-table row: ceil(L / block), after rounding L up to table_align tokens."""
    align, size = int(point["table_align"]), int(point["block_size"])
    aligned = -(-int(point["max_model_len"]) // align) * align
    return -(-aligned // size)


def overrun(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> tuple[int, ...]:
    """Positions past the end that the step at seq_len writes, one a draft pass; () if none."""
    length, seq_len, drafts = (
        int(point[name]) for name in ("max_model_len", "seq_len", "num_speculative_tokens")
    )
    if seq_len >= length:  # the request is done
        return ()
    if settings["admit"] == "all_drafts" and seq_len + drafts > length:
        return ()
    if settings["drafts"] == "clamp_to_remaining":
        drafts = min(drafts, max(1, length - seq_len))
    if settings["at_limit"] != "ignore":
        return ()
    passes = drafts if point["first_draft"] == "own_step" else drafts - 1
    return tuple(p for p in range(seq_len, seq_len + passes) if p >= length)


def predict(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> tuple[Prediction, ...]:
    """What must be found, from the parameters alone: () means clean."""
    past = overrun(point, settings)
    length, size = int(point["max_model_len"]), int(point["block_size"])
    tensors = ["key_cache", "value_cache"]
    if settings["routed"]:
        tensors += ["routed_experts", "routed_weights"]
    if point["placement"] == "unmapped":
        return tuple(
            Prediction(
                Kind.OUT_OF_BOUNDS_WRITE, op="kv_write", tensor=tensor, elements=slot_elements(p)
            )
            for p in past
            for tensor in tensors
        )
    past = tuple(p for p in past if p // size >= columns(point))
    if not past:
        return ()
    if point["placement"] == "garbage_size":
        column = past[0] // size
        return (
            Prediction(
                Kind.OUT_OF_BOUNDS_READ,
                op="draft_step",
                tensor="block_table",
                elements=(column, column),
            ),
            Prediction(Kind.OVERSIZED_ALLOCATION, op="draft_step", tensor="block_table", request=0),
        )
    # Request 0 has the first L / block blocks after the null block, so the other's first block,
    # which column 0 of the next row names, is the one after those.
    first = (1 + length // size) * size
    return (
        *(
            Prediction(
                Kind.FOREIGN_READ,
                op="draft_step",
                tensor="block_table",
                elements=(p // size, p // size),
            )
            for p in past
        ),
        *(
            Prediction(
                Kind.FOREIGN_WRITE,
                op="kv_write",
                tensor=tensor,
                elements=slot_elements(first + p - length),
            )
            for p in past
            for tensor in tensors
        ),
        Prediction(Kind.ACCEPTANCE_LOSS, op="rejection_sample", tensor="draft_tokens", request=1),
    )


def slot_elements(slot: int) -> tuple[int, int]:
    """First and last element of a slot of a KV cache."""
    return slot * WIDTH, slot * WIDTH + WIDTH - 1


def run(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Play the scenario on a lane; the lane records what goes wrong in its launches."""
    from .mtp_tail_run import play

    return play(ops, point, settings, owners)
