"""Scenario `stale_metadata`: a draft loop whose attention metadata is not rebuilt (vllm#41162).

The first draft rides on the pass over target tokens; k - 1 steps follow, each over the draft before
it. Positions, lengths and slots are live buffers that every step advances. What goes stale is what
the attention *builder* derived from them: here the slots a windowed attention reads, and how many.
A captured step reads the tensors it was captured with, and repeats no decision of the host.

Apart from that, the sampler keeps its processed logits in the column of the step, for the rejection
sampler. A column frozen in a captured step leaves drafts alone and corrupts their probabilities.

This file holds the declaration and the closed form (with `stale_course.py`, integers only),
`stale_metadata_run.py` the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ..records import Kind, Outcome, Prediction, Scalar
from .declare import Parameter
from .tensor_names import PAGED, SERVED

if TYPE_CHECKING:
    from ..ops import Ops

WIDTH = 16  # elements of a slot: HEADS x HEAD_DIM of the toy model

PARAMETERS: Mapping[str, Parameter] = {
    "num_speculative_tokens": Parameter(4, int, low=1, high=8, doc="drafts a step (k)"),
    "window": Parameter(12, int, low=1, high=64, doc="positions attention looks back"),
    "block_size": Parameter(4, int, low=1, high=64, doc="tokens in a KV block"),
    "mode": Parameter(
        "captured",
        str,
        choices=("captured", "eager"),
        doc="whether a draft step is replayed from a graph or launched anew",
    ),
    "requests": Parameter(2, int, low=1, high=8, doc="requests served together"),
    "reorder": Parameter(
        "rotate",
        str,
        choices=("none", "rotate"),
        doc="whether the order of the batch changes from one engine step to the next",
    ),
    "prompt": Parameter(6, int, low=2, high=256, doc="prompt of request 0; others: one more each"),
    "new_tokens": Parameter(24, int, low=1, high=256, doc="tokens each request makes"),
    "samples": Parameter(
        256, int, low=256, high=65536, doc="rows of the random-sampling experiment"
    ),
    "seed": Parameter(1, int, low=0, high=2**31 - 64, doc="of prompts and random numbers"),
}
SETTINGS: Mapping[str, Parameter] = {
    "build": Parameter(
        "rebuild_in_place",
        str,
        choices=("once", "never", "snapshot", "rebuild_new", "rebuild_in_place"),
        doc=(
            "when and where the builder derives: once, before the loop; never before the replay, "
            "if captured; once, with copies of the slots (snapshot); every step into new tensors; "
            "every step in place"
        ),
    ),
    "last_update": Parameter(
        "done",
        str,
        choices=("done", "skipped"),
        doc="whether the host leaves out the advance after the last step; a graph freezes that",
    ),
    "column": Parameter(
        "none",
        str,
        choices=("none", "value", "device"),
        doc="the sampler's column as a number or in device memory; none: greedy sampling only",
    ),
    "sampler_capture": Parameter(
        "single_step",
        str,
        choices=("single_step", "whole_loop"),
        doc="captured mode: one sampling step, replayed k - 1 times, or all of them in one graph",
    ),
}
UNITS = PAGED
TENSORS: tuple[str, ...] = (
    *SERVED,
    "current_draft_step",
    "draft_probs",
    "first_lens",
    "idx_mapping",
    "index",
    "lengths",
    "logits",
    "processed",
    "request_tables",
    "sampled",
    "slots_kept",
)


def contradiction(
    point: Mapping[str, Scalar], settings: Mapping[str, Scalar]
) -> tuple[str, str] | None:
    """The key and the sentence of a contradiction between parameters, or None."""
    if settings["sampler_capture"] == "whole_loop" and settings["column"] != "value":
        return "sampler_capture", "a whole loop in one graph takes each step's column by value"
    return None


def column_used(point: Mapping[str, Scalar], settings: Mapping[str, Scalar], step: int) -> int:
    """The column that draft step `step` (0: the first draft) leaves its processed logits in."""
    frozen = (
        point["mode"] == "captured"
        and settings["sampler_capture"] == "single_step"
        and settings["column"] == "value"
    )
    return 1 if frozen and step else step


def predict(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> tuple[Prediction, ...]:
    """What must be found, from the parameters alone: () means clean."""
    from .stale_course import walk

    course = walk(point, settings)
    attention = "paged_attention"
    found = [
        Prediction(Kind.WRONG_VALUE, op=attention, tensor="index", request=number)
        for number in course.stale
    ]
    found += [
        Prediction(Kind.FOREIGN_READ, op=attention, tensor=tensor, elements=elements)
        for tensor in ("key_cache", "value_cache")
        for elements in elements_of(course.foreign)
    ]
    found += [
        Prediction(Kind.ACCEPTANCE_LOSS, op="rejection_sample", tensor="draft_tokens", request=n)
        for n in course.lost
    ]
    steps = range(int(point["num_speculative_tokens"]))
    if settings["column"] != "none" and any(column_used(point, settings, s) != s for s in steps):
        found.append(Prediction(Kind.WRONG_VALUE, op="rejection_sample", tensor="output_tokens"))
    return tuple(found)


def elements_of(slots: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last element of each run of neighbouring slots of a KV cache."""
    for first, last in runs(sorted(slots)):
        yield first * WIDTH, last * WIDTH + WIDTH - 1


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers, in their order, as runs of neighbours: (first, last) each."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def run(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Play the scenario on a lane; the lane records what goes wrong in its launches."""
    from .stale_metadata_run import play

    return play(ops, point, settings, owners)
