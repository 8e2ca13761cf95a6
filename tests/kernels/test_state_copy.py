from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.ops import NOBODY, Owners, Tensor
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    """Rows of the table hold blocks of their own, or the null block."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    batch = draw(st.permutations(range(rows)))[: draw(st.integers(0, rows))]
    mapping = [row if draw(st.integers(0, 5)) else -1 for row in batch]
    column = st.integers(-1, columns - 1)
    shape = draw(st.sampled_from([(1,), (3, 5), (127,), (129,), (2, 8, 8)]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = random.permutation(np.arange(1, rows * columns + 1)).reshape(rows, columns)
    table[random.random(table.shape) < 0.15] = 0
    return {
        "state": random.normal(size=(rows * columns + 1, *shape)).astype(np.float32),
        "block_table": table.astype(np.int32),
        "idx_mapping": np.array(mapping, np.int32),
        "source_column": np.array([draw(column) for _ in batch], np.int32),
        "target_column": np.array([draw(column) for _ in batch], np.int32),
    }


def check(run: Any, batch: dict[str, Any]) -> None:
    """Where each block's values came from, by a dictionary of blocks."""
    taken_from = {block: block for block in range(len(batch["state"]))}
    names = ("idx_mapping", "source_column", "target_column")
    for row, source, target in zip(*(batch[name].tolist() for name in names), strict=True):
        if min(row, source, target) < 0:
            continue
        blocks = batch["block_table"][row]
        if blocks[source] and blocks[target]:
            taken_from[int(blocks[target])] = int(blocks[source])
    wanted = batch["state"][[taken_from[block] for block in range(len(batch["state"]))]]
    assert run.tensors["state"].tolist() == wanted.tolist()
    assert run.wrong == {}


@given(batch=batches())
@settings(max_examples=100, deadline=None)
def test_reference_copies_between_columns_of_a_row(bench: Any, batch: dict[str, Any]) -> None:
    check(bench.reference("state_copy", **batch), batch)


@given(batch=batches())
@settings(max_examples=25, deadline=None)
def test_device_kernel_copies_between_columns_of_a_row(bench: Any, batch: dict[str, Any]) -> None:
    check(bench.emulator("state_copy", **batch), batch)


def one_copy(row: int, source: int, target: int, **changes: Any) -> dict[str, Any]:
    """Two rows of two blocks; six states of two elements whose values are their block."""
    return {
        "state": np.repeat(np.arange(6, dtype=np.float32), 2).reshape(6, 2),
        "block_table": np.array([[1, 2], [3, 4]], np.int32),
        "idx_mapping": np.array([row], np.int32),
        "source_column": np.array([source], np.int32),
        "target_column": np.array([target], np.int32),
        **changes,
    }


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(("row", "source", "target"), [(-1, 0, 1), (1, -1, 0), (1, 1, -1)])
def test_negative_row_or_column_copies_nothing(
    bench: Any, lane: str, row: int, source: int, target: int
) -> None:
    given = one_copy(row, source, target)
    run = getattr(bench, lane)("state_copy", **given)
    assert run.tensors["state"].tolist() == given["state"].tolist()
    assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
def test_equal_columns_do_not_even_look_at_the_table(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("state_copy", **one_copy(9, 5, 5))
    assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(("source", "target"), [(0, 2), (2, 0)])
def test_column_past_the_table_reads_past_it_and_copies_nothing(
    bench: Any, lane: str, source: int, target: int
) -> None:
    given = one_copy(1, source, target)
    run = getattr(bench, lane)("state_copy", **given)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [4]}
    assert run.tensors["state"].tolist() == given["state"].tolist()


@pytest.mark.parametrize("lane", LANES)
def test_column_past_an_inner_row_overwrites_the_neighbours_block(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)(
        "state_copy",
        **one_copy(0, 0, 2),
        owners={
            "block_table": Owners(2, np.array([0, 1], np.int32)),
            "state": Owners(2, np.array([NOBODY, 0, 0, 1, 1, NOBODY], np.int32)),
        },
        requests=np.array([0], np.int32),
    )
    assert run.wrong == {
        (Kind.FOREIGN_READ, "block_table"): [2],
        (Kind.FOREIGN_WRITE, "state"): [6, 7],
    }
    assert run.tensors["state"][:, 0].tolist() == [0, 1, 2, 1, 4, 5]


@pytest.mark.parametrize("lane", LANES)
def test_row_past_the_table_reads_past_it(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("state_copy", **one_copy(2**31 - 1, 0, 1))
    at = 2 * (2**31 - 1)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [at, at + 1]}


@pytest.mark.parametrize("lane", LANES)
def test_memory_behind_the_table_names_the_block_that_is_written(bench: Any, lane: str) -> None:
    behind = {"block_table": np.array([5], np.int32)}
    run = getattr(bench, lane)("state_copy", **one_copy(1, 1, 2), behind=behind)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [4]}
    assert run.tensors["state"][:, 0].tolist() == [0, 1, 2, 3, 4, 4]


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("block", [6, -1, 2**31 - 1])
def test_block_outside_the_state_is_located_on_either_side(
    bench: Any, lane: str, block: int
) -> None:
    table = np.array([[1, block]], np.int32)
    elements = [2 * block, 2 * block + 1]
    run = getattr(bench, lane)("state_copy", **one_copy(0, 0, 1, block_table=table))
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_WRITE, "state"): elements}
    run = getattr(bench, lane)("state_copy", **one_copy(0, 1, 0, block_table=table))
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "state"): elements}
    assert run.tensors["state"][1].tolist() == [0, 0]


@pytest.mark.parametrize("lane", LANES)
def test_block_offset_past_32_bits_is_not_wrapped(bench: Any, lane: str) -> None:
    stride = 2**31 - 1
    state = Tensor("state", np.zeros(4, np.float32), (6, 2), strides=(stride, 1))
    run = getattr(bench, lane)("state_copy", **one_copy(1, 0, 1, state=state))
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "state"): [3 * stride, 3 * stride + 1],
        (Kind.OUT_OF_BOUNDS_WRITE, "state"): [4 * stride, 4 * stride + 1],
    }
