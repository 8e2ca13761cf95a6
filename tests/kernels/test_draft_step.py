from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.kernels.draft_step.reference import AT_LIMIT
from specrepro.repro.ops import Owners, Tensor
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")


def advance(bench: Any, lane: str, steps: int, state: dict[str, Any], **fixed: Any) -> Any:
    """`steps` draft steps, each on what the one before left; slots of every step, last run."""
    slots = []
    for _ in range(steps):
        run = getattr(bench, lane)("draft_step", **state, **fixed)
        assert run.wrong == {}
        state = {name: run.tensors[name] for name in ("positions", "seq_lens", "slots")}
        slots.append(run.tensors["slots"].tolist())
    return slots, state


def state_at(positions: list[int]) -> dict[str, Any]:
    return {
        "positions": np.array(positions, np.int64),
        "seq_lens": np.array(positions, np.int32) + 1,
        "slots": np.zeros(len(positions), np.int64),
    }


@st.composite
def loops(draw: st.DrawFn) -> dict[str, Any]:
    requests = draw(st.integers(0, 4))
    columns = draw(st.integers(2, 5))
    block_size = draw(st.sampled_from([2, 5, 16]))
    top = columns * block_size
    steps = draw(st.integers(1, min(4, top - 1)))
    position = st.integers(0, top - steps - 1)
    blocks = st.lists(
        st.integers(0, 2**31 - 1), min_size=requests * columns, max_size=requests * columns
    )
    return {
        "positions": draw(st.lists(position, min_size=requests, max_size=requests)),
        "table": np.array(draw(blocks), np.int32).reshape(requests, columns),
        "block_size": block_size,
        "steps": steps,
        "limit": draw(st.integers(1, top)),
        "at_limit": draw(st.sampled_from(sorted(AT_LIMIT))),
    }


def slot_of(loop: dict[str, Any], request: int, position: int) -> int:
    block = int(loop["table"][request, position // loop["block_size"]])
    return block * int(loop["block_size"]) + position % int(loop["block_size"])


def closed_form(loop: dict[str, Any]) -> tuple[list[list[int]], list[int], list[int]]:
    """Slots by step, last positions and lengths, each step computed from the start alone."""
    limit, rule, steps = loop["limit"], loop["at_limit"], loop["steps"]
    slots = []
    for step in range(1, steps + 1):
        row = []
        for request, start in enumerate(loop["positions"]):
            position = start + step
            if rule == "clamp":
                position = min(position, limit - 1)
            padded = rule == "pad" and position >= limit
            row.append(-1 if padded else slot_of(loop, request, position))
        slots.append(row)
    last = [start + steps for start in loop["positions"]]
    if rule == "clamp":
        return slots, [min(p, limit - 1) for p in last], [min(p + 1, limit) for p in last]
    if rule == "pad":
        return slots, last, [1 if p >= limit else p + 1 for p in last]
    return slots, last, [p + 1 for p in last]


def check(bench: Any, lane: str, loop: dict[str, Any]) -> None:
    slots, state = advance(
        bench,
        lane,
        loop["steps"],
        state_at(loop["positions"]),
        block_table=loop["table"],
        block_size=loop["block_size"],
        limit=loop["limit"],
        at_limit=AT_LIMIT[loop["at_limit"]],
    )
    wanted, positions, lengths = closed_form(loop)
    assert slots == wanted
    assert state["positions"].tolist() == positions
    assert state["seq_lens"].tolist() == lengths


@given(loop=loops())
@settings(max_examples=80, deadline=None)
def test_reference_loop_is_its_closed_form(bench: Any, loop: dict[str, Any]) -> None:
    check(bench, "reference", loop)


@given(loop=loops())
@settings(max_examples=25, deadline=None)
def test_device_loop_is_its_closed_form(bench: Any, loop: dict[str, Any]) -> None:
    check(bench, "emulator", loop)


@pytest.mark.parametrize("lane", LANES)
def test_padded_request_stays_padded_and_never_resumes(bench: Any, lane: str) -> None:
    slots, state = advance(
        bench,
        lane,
        4,
        state_at([6]),
        block_table=np.array([[3, 4]], np.int32),
        block_size=4,
        limit=8,
        at_limit=AT_LIMIT["pad"],
    )
    assert slots == [[19], [-1], [-1], [-1]]
    assert state["positions"].tolist() == [10]
    assert state["seq_lens"].tolist() == [1]


@pytest.mark.parametrize("lane", LANES)
def test_clamped_request_writes_its_last_slot_again(bench: Any, lane: str) -> None:
    slots, state = advance(
        bench,
        lane,
        3,
        state_at([6]),
        block_table=np.array([[3, 4]], np.int32),
        block_size=4,
        limit=8,
        at_limit=AT_LIMIT["clamp"],
    )
    assert slots == [[19], [19], [19]]
    assert state["seq_lens"].tolist() == [8]


def unguarded(positions: list[int]) -> dict[str, Any]:
    return {
        **state_at(positions),
        "block_table": np.array([[1, 2], [3, 4]], np.int32),
        "block_size": 4,
        "limit": 8,
        "at_limit": AT_LIMIT["ignore"],
    }


@pytest.mark.parametrize("lane", LANES)
def test_unguarded_last_row_reads_past_the_table(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("draft_step", **unguarded([0, 7]))
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [4]}
    assert run.tensors["slots"].tolist() == [5, 0]


@pytest.mark.parametrize("lane", LANES)
def test_unguarded_inner_row_reads_its_neighbours_first_block(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)(
        "draft_step",
        **unguarded([7, 0]),
        owners={"block_table": Owners(2, np.array([0, 1], np.int32))},
        requests=np.array([0, 1], np.int32),
    )
    assert run.wrong == {(Kind.FOREIGN_READ, "block_table"): [2]}
    assert run.tensors["slots"].tolist() == [12, 13]


@pytest.mark.parametrize("lane", LANES)
def test_row_offset_past_32_bits_is_not_wrapped(bench: Any, lane: str) -> None:
    stride = 2**31 - 1
    table = Tensor("block_table", np.zeros(4, np.int32), (4, 2), strides=(stride, 1))
    given = {**unguarded([4, 4, 4, 4]), "block_table": table}
    run = getattr(bench, lane)("draft_step", **given)
    expected = [row * stride + 1 for row in (1, 2, 3)]
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "block_table"): expected}


@pytest.mark.parametrize("lane", LANES)
def test_negative_position_is_divided_towards_zero_as_on_the_device(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("draft_step", **unguarded([-2, -6]))
    assert run.tensors["slots"].tolist() == [4 - 1, 8 - 1]
    assert run.wrong == {}
