from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import specrepro
from specrepro.repro.ops import Owners, Tensor
from specrepro.repro.records import Kind


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    counts = draw(st.lists(st.integers(0, 40), max_size=4))
    columns = draw(st.integers(1, 5))
    block_size = draw(st.sampled_from([1, 3, 16, 128]))
    gap = draw(st.integers(0, 3))
    tokens = sum(counts)
    block = st.integers(0, 2**31 - 1)
    table = np.array(
        draw(st.lists(block, min_size=len(counts) * columns, max_size=len(counts) * columns)),
        np.int32,
    ).reshape(len(counts), columns)
    wide = np.zeros((len(counts), columns + gap), np.int32)
    wide[:, :columns] = table
    position = st.integers(0, columns * block_size - 1)
    return {
        "query_start": np.cumsum([0, *counts], dtype=np.int32),
        "positions": np.array(draw(st.lists(position, min_size=tokens, max_size=tokens)), np.int64),
        "block_table": wide[:, :columns],
        "slots": np.full(tokens + draw(st.integers(0, 40)), 7, np.int64),
        "block_size": block_size,
    }


def one_by_one(batch: dict[str, Any]) -> list[int]:
    slots = []
    for request, table in enumerate(batch["block_table"].tolist()):
        first, last = batch["query_start"][request : request + 2]
        for position in batch["positions"][first:last].tolist():
            block, offset = divmod(position, batch["block_size"])
            slots.append(table[block] * batch["block_size"] + offset)
    return slots + [-1] * (len(batch["slots"]) - len(slots))


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_reference_maps_each_token_and_pads_the_rest(bench: Any, batch: dict[str, Any]) -> None:
    run = bench.reference("slot_mapping", **batch)
    assert run.tensors["slots"].tolist() == one_by_one(batch)
    assert run.wrong == {}


@given(batch=batches())
@settings(max_examples=25, deadline=None)
def test_device_kernel_gives_the_slots_of_the_reference(bench: Any, batch: dict[str, Any]) -> None:
    run = bench.emulator("slot_mapping", **batch)
    assert run.tensors["slots"].tolist() == one_by_one(batch)
    assert run.wrong == {}


def test_slots_past_32_bits_are_kept(bench: Any) -> None:
    batch = {
        "query_start": np.array([0, 1], np.int32),
        "positions": np.array([129], np.int64),
        "block_table": np.array([[0, 2**31 - 1]], np.int32),
        "slots": np.zeros(1, np.int64),
        "block_size": 128,
    }
    wanted = [(2**31 - 1) * 128 + 1]
    assert bench.reference("slot_mapping", **batch).tensors["slots"].tolist() == wanted
    assert bench.emulator("slot_mapping", **batch).tensors["slots"].tolist() == wanted


def past_the_row(requests: int) -> dict[str, Any]:
    """The last request's tokens are at positions 7, 8 and 9 of a row of 2 blocks of 4."""
    tokens = requests + 2
    return {
        "query_start": np.array([*range(requests), tokens], np.int32),
        "positions": np.array([0] * (requests - 1) + [7, 8, 9], np.int64),
        "block_table": np.arange(1, 2 * requests + 1, dtype=np.int32).reshape(requests, 2),
        "slots": np.zeros(tokens, np.int64),
        "block_size": 4,
    }


def test_position_past_the_last_row_reads_past_the_table(bench: Any) -> None:
    batch = past_the_row(2)
    expected = {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [4]}
    reference = bench.reference("slot_mapping", **batch)
    emulator = bench.emulator("slot_mapping", **batch)
    assert reference.wrong == expected
    assert emulator.wrong == expected
    assert emulator.tensors["slots"].tolist() == reference.tensors["slots"].tolist()
    assert reference.tensors["slots"].tolist() == [4, 19, 0, 1]  # masked: block 0
    source = (Path(specrepro.__file__).parent / "kernels/slot_mapping/kernel.py").read_text()
    (line,) = emulator.lines[Kind.OUT_OF_BOUNDS_READ, "block_table"]
    assert "tl.load(table_row" in source.splitlines()[line - 1]


def test_position_past_an_inner_row_reads_the_neighbours_row(bench: Any) -> None:
    batch = {**past_the_row(1)}
    batch["block_table"] = np.array([[1, 2], [3, 4]], np.int32)
    owners = {"block_table": Owners(2, np.array([0, 1], np.int32))}
    requests = np.array([0], np.int32)
    expected = {(Kind.FOREIGN_READ, "block_table"): [2]}
    for run in (
        bench.reference("slot_mapping", **batch, owners=owners, requests=requests),
        bench.emulator("slot_mapping", **batch, owners=owners, requests=requests),
    ):
        assert run.wrong == expected
        assert run.tensors["slots"].tolist() == [11, 12, 13]  # the neighbour's block 3


def test_memory_stated_behind_the_table_is_read(bench: Any) -> None:
    batch = past_the_row(1)
    behind = {"block_table": np.array([900], np.int32)}
    expected = {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [2]}
    for run in (
        bench.reference("slot_mapping", **batch, behind=behind),
        bench.emulator("slot_mapping", **batch, behind=behind),
    ):
        assert run.wrong == expected
        assert run.tensors["slots"].tolist() == [11, 3600, 3601]


def test_row_offset_past_32_bits_is_not_wrapped(bench: Any) -> None:
    stride = 2**31 - 1
    batch = {
        "query_start": np.array([0, 0, 0, 0, 1], np.int32),
        "positions": np.array([5], np.int64),
        "block_table": Tensor("block_table", np.zeros(4, np.int32), (4, 2), strides=(stride, 1)),
        "slots": np.zeros(1, np.int64),
        "block_size": 4,
    }
    expected = {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [3 * stride + 1]}
    assert bench.reference("slot_mapping", **batch).wrong == expected
    assert bench.emulator("slot_mapping", **batch).wrong == expected


def test_negative_position_is_divided_towards_zero_as_on_the_device(bench: Any) -> None:
    batch = {**past_the_row(1), "positions": np.array([-1, -4, -5], np.int64)}
    for run in (bench.reference("slot_mapping", **batch), bench.emulator("slot_mapping", **batch)):
        assert run.tensors["slots"].tolist() == [4 - 1, 0, -1]
        assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [-1]}
