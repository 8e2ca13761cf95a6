from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.ops import Owners, Tensor
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    slots, columns = draw(st.integers(1, 5)), draw(st.sampled_from([1, 3, 32, 33, 70]))
    mapping = draw(st.lists(st.integers(-2, slots - 1), max_size=5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    wide = random.integers(-(2**31), 2**31 - 1, (slots, columns + 3), np.int32)
    return {
        "idx_mapping": np.array(mapping, np.int32),
        "source": wide[:, : columns + draw(st.integers(0, 3))],
        "out": np.full((len(mapping), columns + 2), 7, np.int32)[:, :columns],
    }


def check(run: Any, batch: dict[str, Any]) -> None:
    mapping, columns = batch["idx_mapping"], batch["out"].shape[1]
    source = batch["source"][:, :columns].tolist()
    wanted = [[7] * columns if request < 0 else source[request] for request in mapping.tolist()]
    assert run.tensors["out"].tolist() == wanted
    assert run.wrong == {}


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_reference_takes_rows_and_skips_negative_ones(bench: Any, batch: dict[str, Any]) -> None:
    check(bench.reference("gather_block_tables", **batch), batch)


@given(batch=batches())
@settings(max_examples=20, deadline=None)
def test_device_kernel_takes_rows_and_skips_negative_ones(
    bench: Any, batch: dict[str, Any]
) -> None:
    check(bench.emulator("gather_block_tables", **batch), batch)


def gather(mapping: list[int], **changes: Any) -> dict[str, Any]:
    return {
        "idx_mapping": np.array(mapping, np.int32),
        "source": np.array([[1, 2], [3, 4], [5, 6]], np.int32),
        "out": np.full((len(mapping), 2), 7, np.int32),
        **changes,
    }


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("request_slot", [3, 2**31 - 1])
def test_row_past_the_source_is_read_at_its_own_elements(
    bench: Any, lane: str, request_slot: int
) -> None:
    run = getattr(bench, lane)("gather_block_tables", **gather([0, request_slot]))
    elements = [2 * request_slot, 2 * request_slot + 1]
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "source"): elements}
    assert run.tensors["out"].tolist() == [[1, 2], [0, 0]]


@pytest.mark.parametrize("lane", LANES)
def test_stated_memory_behind_the_source_is_what_is_read(bench: Any, lane: str) -> None:
    behind = {"source": np.array([8, 9], np.int32)}
    run = getattr(bench, lane)("gather_block_tables", **gather([3]), behind=behind)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "source"): [6, 7]}
    assert run.tensors["out"].tolist() == [[8, 9]]


@pytest.mark.parametrize("lane", LANES)
def test_row_of_another_request_is_foreign_and_read(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)(
        "gather_block_tables",
        **gather([2, 0]),
        owners={"source": Owners(2, np.array([0, 1, 2], np.int32))},
        requests=np.array([1, 0], np.int32),
    )
    assert run.wrong == {(Kind.FOREIGN_READ, "source"): [4, 5]}
    assert run.tensors["out"].tolist() == [[5, 6], [1, 2]]


@pytest.mark.parametrize("lane", LANES)
def test_columns_past_a_narrower_source_row_come_from_the_next_rows(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)(
        "gather_block_tables", **gather([0, 2], out=np.full((2, 3), 7, np.int32))
    )
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "source"): [6]}
    assert run.tensors["out"].tolist() == [[1, 2, 3], [5, 6, 0]]


@pytest.mark.parametrize("lane", LANES)
def test_row_of_out_past_32_bits_is_not_wrapped(bench: Any, lane: str) -> None:
    stride = 2**31 - 1
    out = Tensor("out", np.zeros(1, np.int32), (4, 1), strides=(stride, 1))
    run = getattr(bench, lane)("gather_block_tables", **gather([0, 1, 2, 0], out=out))
    elements = [row * stride for row in (1, 2, 3)]
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_WRITE, "out"): elements}
