from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.ops import Owners, Tensor
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")
UNTOUCHED = -7


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    requests = draw(st.integers(0, 4))
    lengths = draw(st.lists(st.integers(0, 90), min_size=requests, max_size=requests))
    block_size = draw(st.sampled_from([1, 5, 16]))
    window = draw(st.sampled_from([1, 4, 33, 64, 100]))
    columns = max([1, *(-(-length // block_size) for length in lengths)])
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    gap = draw(st.integers(0, 3))
    return {
        "seq_lens": np.array(lengths, np.int32),
        "block_table": random.integers(0, 2**31 // block_size, (requests, columns), np.int32),
        "index": np.full((requests, window + gap + 2), UNTOUCHED, np.int32)[:, : window + gap],
        "lengths": np.full(requests, UNTOUCHED, np.int32),
        "block_size": block_size,
        "window": window,
    }


def last_slots(batch: dict[str, Any]) -> list[list[int]]:
    """Every slot of the request, in the order of its positions; then the end of that list."""
    lists = []
    for length, blocks in zip(batch["seq_lens"], batch["block_table"].tolist(), strict=True):
        size = batch["block_size"]
        slots = [slot for block in blocks for slot in range(block * size, block * size + size)]
        lists.append(slots[:length][-batch["window"] :])
    return lists


def check(run: Any, batch: dict[str, Any]) -> None:
    wanted = last_slots(batch)
    width = batch["index"].shape[1]
    assert run.tensors["lengths"].tolist() == [len(slots) for slots in wanted]
    assert run.tensors["index"].tolist() == [
        slots + [UNTOUCHED] * (width - len(slots)) for slots in wanted
    ]
    assert run.wrong == {}


@given(batch=batches())
@settings(max_examples=80, deadline=None)
def test_reference_lists_the_last_slots_of_each_request(bench: Any, batch: dict[str, Any]) -> None:
    check(bench.reference("window_index", **batch), batch)


@given(batch=batches())
@settings(max_examples=20, deadline=None)
def test_device_kernel_lists_the_last_slots_of_each_request(
    bench: Any, batch: dict[str, Any]
) -> None:
    check(bench.emulator("window_index", **batch), batch)


def two_requests(seq_lens: list[int], **changes: Any) -> dict[str, Any]:
    """Blocks of 4, rows of two blocks, a window of 3."""
    return {
        "seq_lens": np.array(seq_lens, np.int32),
        "block_table": np.array([[1, 2], [3, 4]], np.int32),
        "index": np.full((2, 3), UNTOUCHED, np.int32),
        "lengths": np.zeros(2, np.int32),
        "block_size": 4,
        "window": 3,
        **changes,
    }


@pytest.mark.parametrize("lane", LANES)
def test_attention_over_the_list_is_attention_with_that_window(bench: Any, lane: str) -> None:
    random = np.random.default_rng(3)
    run = getattr(bench, lane)("window_index", **two_requests([7, 2]))
    common = {
        "query": random.normal(size=(2, 2, 8)).astype(np.float16),
        "key_cache": random.normal(size=(20, 2, 8)).astype(np.float16),
        "value_cache": random.normal(size=(20, 2, 8)).astype(np.float16),
        "query_start": np.array([0, 1, 2], np.int32),
        "out": np.zeros((2, 2, 8), np.float32),
        "scale": 0.5,
    }
    table, lengths = run.tensors["index"], run.tensors["lengths"]
    listed = getattr(bench, lane)(
        "paged_attention", **common, block_table=table, seq_lens=lengths, block_size=1
    )
    windowed = getattr(bench, lane)(
        "paged_attention",
        **common,
        block_table=np.array([[1, 2], [3, 4]], np.int32),
        seq_lens=np.array([7, 2], np.int32),
        block_size=4,
        window=3,
    )
    assert listed.wrong == windowed.wrong == {}
    assert listed.tensors["out"].tolist() == windowed.tensors["out"].tolist()


@pytest.mark.parametrize("lane", LANES)
def test_length_past_the_last_row_reads_past_the_table(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("window_index", **two_requests([4, 10]))
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [4]}
    assert run.tensors["index"].tolist() == [[5, 6, 7], [4 * 4 + 3, 0, 1]]


@pytest.mark.parametrize("lane", LANES)
def test_length_past_an_inner_row_reads_its_neighbours_blocks(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)(
        "window_index",
        **two_requests([10, 4]),
        owners={"block_table": Owners(2, np.array([0, 1], np.int32))},
        requests=np.array([0, 1], np.int32),
    )
    assert run.wrong == {(Kind.FOREIGN_READ, "block_table"): [2]}
    assert run.tensors["index"].tolist() == [[2 * 4 + 3, 12, 13], [13, 14, 15]]


@pytest.mark.parametrize("lane", LANES)
def test_window_wider_than_the_list_writes_past_it(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("window_index", **two_requests([1, 8], window=5))
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_WRITE, "index"): [6, 7]}


@pytest.mark.parametrize("lane", LANES)
def test_slot_past_32_bits_wraps(bench: Any, lane: str) -> None:
    table = np.array([[2**30 + 1, 0], [2**31 - 1, 0]], np.int32)
    run = getattr(bench, lane)("window_index", **two_requests([1, 1], block_table=table))
    assert run.tensors["index"][:, 0].tolist() == [4, -4]


@pytest.mark.parametrize("lane", LANES)
def test_row_offsets_past_32_bits_are_not_wrapped(bench: Any, lane: str) -> None:
    stride = 2**31 - 1
    table = Tensor("block_table", np.zeros(2, np.int32), (4, 1), strides=(stride, 1))
    index = Tensor("index", np.zeros(3, np.int32), (4, 3), strides=(stride, 1))
    given = two_requests([1] * 4, block_table=table, index=index, lengths=np.zeros(4, np.int32))
    run = getattr(bench, lane)("window_index", **given)
    elements = [row * stride for row in (1, 2, 3)]
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "block_table"): elements,
        (Kind.OUT_OF_BOUNDS_WRITE, "index"): elements,
    }
