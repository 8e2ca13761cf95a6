"""Scenario `draft_gate`: one length gate for the whole batch, and zeros behind it (vllm#58080).

The draft model keeps its native length D while `--hf-overrides` lets the target serve T > D. Before
drafting, vLLM's runner V1 compares the batch's longest request, its scheduled drafts all counted as
accepted, plus k with D (`_input_fits_in_drafter`, 0.23.0; an expression in place before). If that
does not fit, nobody drafts: every request of the batch gets token 0, k times, without
probabilities, and the target verifies them. This file holds the declaration and the closed form;
`draft_gate_run.py` the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..records import Kind, Outcome, Prediction, Scalar
from .declare import Parameter
from .tensor_names import PAGED, SERVED

if TYPE_CHECKING:
    from ..ops import Ops

HEAD_DIM = 8  # of the toy model: floats in a row of the rotation table
LONGEST_WITHOUT_WINDOW = 4096

PARAMETERS: Mapping[str, Parameter] = {
    "target_len": Parameter(64, int, low=16, high=1 << 22, doc="max_model_len of the target (T)"),
    "draft_len": Parameter(32, int, low=8, high=1 << 22, doc="max_model_len of the draft (D)"),
    "num_speculative_tokens": Parameter(2, int, low=1, high=16, doc="drafts a step (k)"),
    "long_prompt": Parameter(24, int, low=2, high=1 << 22, doc="prompt of the long request"),
    "long_new": Parameter(12, int, low=1, high=4096, doc="tokens the long request makes"),
    "short_prompt": Parameter(
        6, int, low=0, high=1 << 22, doc="prompt of its neighbour; 0: no neighbour"
    ),
    "short_new": Parameter(20, int, low=1, high=4096, doc="tokens the neighbour makes"),
    "scheduling": Parameter(
        "async",
        str,
        choices=("async", "sync"),
        doc="async decides how many slots to verify one step ahead (vLLM's default from 0.14.0)",
    ),
    "window": Parameter(
        0, int, low=0, high=4096, doc="positions attention looks back; 0: all, short prompts only"
    ),
    "block_size": Parameter(16, int, low=1, high=256, doc="tokens in a KV block"),
    "samples": Parameter(
        256, int, low=0, high=65536, doc="rows of the random-sampling experiment; 0: left out"
    ),
    "seed": Parameter(1, int, low=0, high=2**31 - 1, doc="of prompts and random numbers"),
}
SETTINGS: Mapping[str, Parameter] = {
    "override": Parameter(
        "not_passed_on",
        str,
        choices=("not_passed_on", "inherited"),
        doc="whether the override reaches the draft's config: draft length D, or the target's T",
    ),
    "gate": Parameter(
        "batch",
        str,
        choices=("batch", "none"),
        doc="one gate for the batch (runner V1), or none (runner V2)",
    ),
    "shut": Parameter(
        "zeros",
        str,
        choices=("zeros", "nothing"),
        doc="what is proposed behind a shut gate: token 0, or nothing",
    ),
    "zeros_when": Parameter(
        "always",
        str,
        choices=("always", "async_only"),
        doc="zeros in both scheduling modes (from 0.20.0), or in async mode only (0.14.0-0.19.1)",
    ),
}
UNITS = PAGED
TENSORS: tuple[str, ...] = (*SERVED, "draft_probs")


def contradiction(
    point: Mapping[str, Scalar], settings: Mapping[str, Scalar]
) -> tuple[str, str] | None:
    """The key and the sentence of a contradiction between parameters, or None."""
    target, draft = int(point["target_len"]), int(point["draft_len"])
    k, window = int(point["num_speculative_tokens"]), int(point["window"])
    if draft >= target:
        return "draft_len", f"{draft} must be less than target_len {target}"
    if k >= draft:
        return "num_speculative_tokens", f"{k} drafts never fit under draft_len {draft}"
    if target % int(point["block_size"]):
        return "block_size", f"{point['block_size']} does not divide target_len {target}"
    for name in ("long", "short"):
        prompt, new = int(point[f"{name}_prompt"]), int(point[f"{name}_new"])
        if prompt == 1:
            return f"{name}_prompt", "1 is too short: at least 2, or 0 for no neighbour"
        if prompt and prompt + new + 2 * k > target:
            return f"{name}_new", f"{prompt} + {new} + 2 * {k} drafts exceed target_len {target}"
        if prompt + new > LONGEST_WITHOUT_WINDOW and not window:
            return "window", (
                f"must be set for sequences over {LONGEST_WITHOUT_WINDOW} tokens, "
                "so that attention stays small"
            )
    return None


def draft_length(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> int:
    """The draft's max_model_len under a variant: T where the override is inherited, else D."""
    return int(point["target_len" if settings["override"] == "inherited" else "draft_len"])


def gate_open(longest: int, k: int, length: int) -> bool:
    """The gate: `longest` counts computed tokens and scheduled drafts, all as accepted."""
    return longest + k <= length


def warns(draft_len: int, effective_target_len: int, native_len: int | None = None) -> bool:
    """Whether a start-up warning is due: the draft is shorter than what the target really serves.

    The *effective* target length decides (overrides and --max-model-len applied), as vllm#58080
    asks. `native_len` (max_position_embeddings of the target's own config) is accepted to say that
    it plays no part: comparing with it reports too much where the user serves less than the native
    length, and too little where an override raises it.
    """
    return draft_len < effective_target_len


def proposes_zeros(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> bool:
    """Whether a shut gate puts token 0 in the place of every draft, in this scheduling mode."""
    return settings["shut"] == "zeros" and (
        settings["zeros_when"] == "always" or point["scheduling"] == "async"
    )


def slots_ahead(k: int, step: int, had_drafts: bool, has_drafts: bool, asynchronous: bool) -> int:
    """Draft slots of a request in step `step + 1`.

    Synchronous scheduling knows what was proposed (`has_drafts`). Asynchronous scheduling decides
    while the step before is still running, by whether that one had drafts; after prefill it hopes.
    """
    if asynchronous:
        return k if step == 0 or had_drafts else 0
    return k if has_drafts else 0


@dataclass(frozen=True, slots=True)
class Walk:
    """The course of a run in closed form: every honest draft accepted, every zero refused.

    steps: engine steps, prefill included. furthest: highest position the draft layer computes, -1
    if it never runs. lost: requests for which zeros were verified.
    """

    steps: int
    furthest: int
    lost: tuple[int, ...]


def walk(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> Walk:
    """Follow lengths and gate by arithmetic alone; the oracle of the scenario."""
    k, length = int(point["num_speculative_tokens"]), draft_length(point, settings)
    zeros = proposes_zeros(point, settings)
    left = {0: int(point["long_new"])}
    at = {0: int(point["long_prompt"])}
    if int(point["short_prompt"]):
        left[1], at[1] = int(point["short_new"]), int(point["short_prompt"])
    step, slots, content, furthest = 0, 0, "none", -1
    lost: set[int] = set()
    while left:
        longest = max(at[number] + slots for number in left)
        for number in tuple(left):
            if slots and content == "zeros":
                lost.add(number)
            grows = min(left[number], slots + 1 if content == "drafts" else 1)
            at[number] += grows
            left[number] -= grows
            if not left[number]:
                del left[number]
        had = content != "none"
        if settings["gate"] == "none" or gate_open(longest, k, length):
            content = "drafts"
            if left:
                furthest = max(furthest, *(at[number] + k - 2 for number in left))
        else:
            content = "zeros" if zeros else "none"
        slots = slots_ahead(k, step, had, content != "none", point["scheduling"] == "async")
        step += 1
    return Walk(step, furthest, tuple(sorted(lost)))


def predict(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> tuple[Prediction, ...]:
    """What must be found, from the parameters alone: () means clean."""
    course = walk(point, settings)
    # Up to the first read past the table every draft is honest, so the walk is exact until then;
    # after it, acceptance depends on what the damaged rotation makes of the tokens.
    if settings["gate"] == "none":
        rows = int(point["draft_len"]) if settings["override"] != "inherited" else None
        if rows is None or course.furthest < rows:
            return ()
        first = max(rows, first_position(point))
        return (
            Prediction(
                Kind.OUT_OF_BOUNDS_READ,
                op="rope",
                tensor="rope_table",
                elements=(first * HEAD_DIM, first * HEAD_DIM + HEAD_DIM - 1),
                at_least=True,
            ),
        )
    return tuple(
        Prediction(
            Kind.ACCEPTANCE_LOSS, op="rejection_sample", tensor="draft_tokens", request=number
        )
        for number in course.lost
    )


def first_position(point: Mapping[str, Scalar], request: str = "long") -> int:
    """The first position whose KV a request holds: 0, or the first block the window reaches."""
    window, size = int(point["window"]), int(point["block_size"])
    prompt = int(point[f"{request}_prompt"])
    if not window or prompt <= window:
        return 0
    return (prompt - window) // size * size


def run(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Play the scenario on a lane; the lane records what goes wrong in its launches."""
    from .draft_gate_run import play

    return play(ops, point, settings, owners)
