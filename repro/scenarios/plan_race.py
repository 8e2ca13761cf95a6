"""Scenario `plan_race`: the plan of an attention overwritten while its copy is in flight (C1).

Every pass of the draft loop plans its split-KV attention anew. The host writes the plan into pinned
buffers, queues copies to the device, launches attention and merge with the numbers of *that* plan,
and goes on to the next pass without waiting. A copy reads the host buffer when it executes, so a
buffer that the next plan reuses carries the later plan: the kernels run with one plan's grid and
offsets, and another's contents. Two owners of such buffers, each with its own copies: the engine
(page_indptr, page_indices, last_page_len) and the attention library (its work space `split`).

This file holds the declaration, `plan_race_run.py` the program, `plan_forecast.py` the closed form:
it counts pieces of work (`plan_arrival.py`) and indices (`plan_reads.py`); no op runs.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..records import Outcome, Prediction, Scalar
from .declare import Parameter
from .plan_arrival import BUFFERS, ENGINE_BUFFERS, LIBRARY_BUFFER, Pace
from .split_plan import SplitPlan, work_space
from .tensor_names import PAGED, SERVED
from .toy_tokens import VOCAB

if TYPE_CHECKING:
    from ..ops import Ops

PARAMETERS: Mapping[str, Parameter] = {
    "num_speculative_tokens": Parameter(4, int, low=1, high=16, doc="drafts a step (k)"),
    "requests": Parameter(4, int, low=1, high=16, doc="requests that run at the same time"),
    "prompt": Parameter(9, int, low=1, high=512, doc="tokens of the first request's prompt"),
    "stagger": Parameter(1, int, low=0, high=64, doc="tokens each further prompt is longer"),
    "block_size": Parameter(4, int, low=1, high=256, doc="tokens in a page of the KV cache"),
    "max_chunks": Parameter(32, int, low=1, high=512, doc="chunks that the grid holds"),
    "rounds": Parameter(1, int, low=1, high=8, doc="engine steps that speculate"),
    "host_ahead": Parameter(
        12, int, low=0, high=512, doc="pieces of work the host runs ahead; 0: launches block"
    ),
    "pace": Parameter(
        "steady",
        str,
        choices=("steady", "drawn"),
        doc="always host_ahead pieces ahead, or drawn from 0..host_ahead for each piece",
    ),
    "seed": Parameter(1, int, low=0, high=2**31 - 1, doc="of the prompts and the pace"),
}
SETTINGS: Mapping[str, Parameter] = {
    "host": Parameter(
        "reuse",
        str,
        choices=("reuse", "fresh", "wait", "pageable"),
        doc="one pinned buffer for all plans, a new one each, reuse after an event, or staged",
    ),
    "reused": Parameter(
        "both", str, choices=("engine", "library", "both"), doc="whose buffers; the rest is fresh"
    ),
    "pages": Parameter(
        "small",
        str,
        choices=("small", "whole"),
        doc="pages of block_size, or one that holds a whole request: no plan differs from the next",
    ),
    "fence": Parameter(
        "none",
        str,
        choices=("none", "before_plan", "after_copies", "after_attention"),
        doc="where each pass waits for the device",
    ),
}
UNITS = PAGED
TENSORS: tuple[str, ...] = (
    *SERVED,
    "last_page_len",
    "page_indices",
    "page_indptr",
    "partial_lse",
    "partial_out",
    "split",
)


def contradiction(
    point: Mapping[str, Scalar], settings: Mapping[str, Scalar]
) -> tuple[str, str] | None:
    """The key and the sentence of a contradiction between parameters, or None."""
    if int(point["requests"]) > int(point["max_chunks"]):
        return "max_chunks", (
            f"{point['max_chunks']} is too few for {point['requests']} requests: "
            "each has a chunk at least"
        )
    return None


def prompts(point: Mapping[str, Scalar]) -> list[list[int]]:
    """The prompt of each request; drawn without numpy, which planning a run does not load."""
    starts = []
    for number in range(int(point["requests"])):
        draw = random.Random(int(point["seed"]) + number)  # noqa: S311 - a prompt, not a secret
        length = int(point["prompt"]) + number * int(point["stagger"])
        starts.append(draw.choices(range(1, VOCAB), k=length))
    return starts


def growth(point: Mapping[str, Scalar]) -> int:
    """Tokens every request makes: one by its prompt, and k + 1 a round where all are accepted."""
    return 1 + int(point["rounds"]) * (int(point["num_speculative_tokens"]) + 1)


def paging(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> tuple[int, int]:
    """Tokens in a page, and pages that every request is given: room for k drafts past its end."""
    k = int(point["num_speculative_tokens"])
    room = max(map(len, prompts(point))) + growth(point) + k
    size = room if settings["pages"] == "whole" else int(point["block_size"])
    return size, -(-room // size)


def reused_buffers(settings: Mapping[str, Scalar]) -> tuple[str, ...]:
    """The buffers whose host memory every plan overwrites."""
    whose = {"engine": ENGINE_BUFFERS, "library": (LIBRARY_BUFFER,), "both": BUFFERS}
    return whose[str(settings["reused"])]


def pace(point: Mapping[str, Scalar], turn: int) -> Pace:
    """The pace of the draft loop in round `turn`, from 0."""
    return Pace(int(point["host_ahead"]), int(point["seed"]) + turn, point["pace"] == "steady")


def contents(plan: SplitPlan, name: str) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """What a plan writes into a buffer: offset and values of each field."""
    if name == LIBRARY_BUFFER:
        return plan.fields()
    values: tuple[int, ...] = getattr(plan, name)
    return ((0, values),)


def sizes(point: Mapping[str, Scalar], columns: int) -> dict[str, int]:
    """int32 elements of each buffer."""
    count = int(point["requests"])
    elements = (count + 1, count * columns, count, work_space(count, columns))
    return dict(zip(BUFFERS, elements, strict=True))


def predict(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> tuple[Prediction, ...]:
    """What must be found, from the parameters and the schedule alone: () means clean."""
    if settings["host"] != "reuse" or settings["fence"] != "none":
        return ()
    from .plan_forecast import forecast

    return forecast(point, settings).predictions()


def block_rows(count: int, columns: int) -> list[list[int]]:
    """Blocks of each request, in order; block 0 is the null block."""
    return [[1 + number * columns + c for c in range(columns)] for number in range(count)]


def run(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Play the scenario on a lane; the lane records what goes wrong in its launches."""
    from .plan_race_run import play

    return play(ops, point, settings, owners)
