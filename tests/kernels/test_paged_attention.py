from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.ops import NOBODY, Owners, Tensor
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")
# fp16 in, fp32 out: the reference keeps fp64 until it stores; the device kernel sums in fp32
REFERENCE_BOUND = 2.0**-22
DEVICE_BOUND = 2.0**-20


@st.composite
def batches(draw: st.DrawFn, longest: int = 70) -> dict[str, Any]:
    requests = draw(st.integers(0, 3))
    lengths = draw(st.lists(st.integers(0, longest), min_size=requests, max_size=requests))
    counts = [draw(st.integers(0, min(4, length))) for length in lengths]
    kv_heads, group = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 3)]))
    head_dim = draw(st.sampled_from([1, 3, 8, 16]))
    block_size = draw(st.sampled_from([1, 7, 16, 128]))
    columns = max([1, *(-(-length // block_size) for length in lengths)])
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blocks = requests * columns + 2
    tokens, gap = sum(counts), draw(st.integers(0, 2))

    def numbers(*shape: int) -> Any:
        return random.normal(0, 1, shape).astype(np.float16)

    return {
        "query": numbers(tokens, kv_heads * group + gap, head_dim)[:, : kv_heads * group],
        "key_cache": numbers(blocks * block_size, kv_heads, head_dim),
        "value_cache": numbers(blocks * block_size, kv_heads, head_dim),
        "block_table": random.permutation(blocks)[: requests * columns]
        .astype(np.int32)
        .reshape(requests, columns),
        "query_start": np.cumsum([0, *counts], dtype=np.int32),
        "seq_lens": np.array(lengths, np.int32),
        "out": np.full((tokens, kv_heads * group, head_dim), np.nan, np.float32),
        "block_size": block_size,
        "scale": draw(st.sampled_from([1.0, 0.25, head_dim**-0.5])),
        "window": draw(st.sampled_from([0, 0, 1, 5, 16, 1000])),
    }


def dense(batch: dict[str, Any]) -> Any:
    """A whole score matrix per request and head, masked; gathers the cache position by position."""
    query = batch["query"].astype(np.float64)
    out = np.zeros(query.shape)
    group = query.shape[1] // batch["key_cache"].shape[1]
    for request, length in enumerate(batch["seq_lens"].tolist()):
        first, last = batch["query_start"][request : request + 2].tolist()
        blocks = batch["block_table"][request].tolist()
        size = batch["block_size"]
        slots = [blocks[p // size] * size + p % size for p in range(length)]
        at = np.arange(length - (last - first), length)[:, None]
        seen = np.arange(length)[None] <= at
        if batch["window"]:
            seen &= np.arange(length)[None] > at - batch["window"]
        for head in range(query.shape[1]):
            keys = batch["key_cache"][slots, head // group].astype(np.float64)
            values = batch["value_cache"][slots, head // group].astype(np.float64)
            weights = np.exp(query[first:last, head] @ keys.T * batch["scale"]) * seen
            out[first:last, head] = (weights / weights.sum(1, keepdims=True)) @ values
    return out


def relative_rms(got: Any, wanted: Any) -> float:
    if wanted.size == 0:
        return 0.0
    error = np.sqrt(np.mean(np.square(got.astype(np.float64) - wanted)))
    return float(error / np.sqrt(np.mean(np.square(wanted))))


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_reference_is_dense_masked_softmax(bench: Any, batch: dict[str, Any]) -> None:
    run = bench.reference("paged_attention", **batch)
    assert relative_rms(run.tensors["out"], dense(batch)) <= REFERENCE_BOUND
    assert run.wrong == {}


@given(batch=batches(longest=40))
@settings(max_examples=20, deadline=None)
def test_device_kernel_is_within_fp32_rounding_of_the_reference(
    bench: Any, batch: dict[str, Any]
) -> None:
    reference = bench.reference("paged_attention", **batch)
    emulator = bench.emulator("paged_attention", **batch)
    wanted = reference.tensors["out"].astype(np.float64)
    assert relative_rms(emulator.tensors["out"], wanted) <= DEVICE_BOUND
    assert emulator.wrong == {}


def one_query(length: int, blocks: list[int], **changes: Any) -> dict[str, Any]:
    """One request, one query, blocks of 4; caches of 4 blocks whose values are their slots."""
    slots = np.arange(16, dtype=np.float16).reshape(16, 1, 1)
    return {
        "query": np.zeros((1, 1, 1), np.float16),
        "key_cache": slots,
        "value_cache": slots,
        "block_table": np.array([blocks], np.int32),
        "query_start": np.array([0, 1], np.int32),
        "seq_lens": np.array([length], np.int32),
        "out": np.full((1, 1, 1), np.nan, np.float32),
        "block_size": 4,
        "scale": 1.0,
        **changes,
    }


@pytest.mark.parametrize("lane", LANES)
def test_a_query_that_sees_nothing_gives_zero(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("paged_attention", **one_query(0, [1, 2]))
    assert run.tensors["out"].tolist() == [[[0]]]
    assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
def test_positions_outside_the_window_are_not_read(bench: Any, lane: str) -> None:
    owners = Owners(4, np.array([NOBODY, 0, NOBODY, NOBODY], np.int32))
    run = getattr(bench, lane)(
        "paged_attention",
        **one_query(8, [2, 1], window=3),
        owners={"key_cache": owners, "value_cache": owners},
        requests=np.array([0], np.int32),
    )
    assert run.wrong == {}
    assert run.tensors["out"].item() == pytest.approx((5 + 6 + 7) / 3, rel=1e-6)


@pytest.mark.parametrize("lane", LANES)
def test_length_past_the_table_reads_past_it_and_block_0_instead(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("paged_attention", **one_query(10, [1, 2]))
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "block_table"): [2]}
    assert run.tensors["out"].item() == pytest.approx((sum(range(4, 12)) + 0 + 1) / 10, rel=1e-6)


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("block", [4, 2**29, 2**31 - 1])
def test_bad_block_id_is_read_at_its_own_element(bench: Any, lane: str, block: int) -> None:
    run = getattr(bench, lane)("paged_attention", **one_query(6, [1, block]))
    elements = [block * 4, block * 4 + 1]
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "key_cache"): elements,
        (Kind.OUT_OF_BOUNDS_READ, "value_cache"): elements,
    }


@pytest.mark.parametrize("lane", LANES)
def test_block_of_another_request_is_foreign_and_read(bench: Any, lane: str) -> None:
    owners = Owners(4, np.array([1, 0, 1, 1], np.int32))
    run = getattr(bench, lane)(
        "paged_attention",
        **one_query(5, [1, 3]),
        owners={"key_cache": owners},
        requests=np.array([0], np.int32),
    )
    assert run.wrong == {(Kind.FOREIGN_READ, "key_cache"): [12]}
    assert run.tensors["out"].item() == pytest.approx((4 + 5 + 6 + 7 + 12) / 5, rel=1e-6)


@pytest.mark.parametrize("lane", LANES)
def test_cache_offset_past_32_bits_is_not_wrapped(bench: Any, lane: str) -> None:
    stride = 2**31 - 1
    cache = Tensor("key_cache", np.zeros(16, np.float16), (16, 1, 1), strides=(stride, 1, 1))
    run = getattr(bench, lane)("paged_attention", **one_query(2, [1], key_cache=cache))
    assert run.wrong[Kind.OUT_OF_BOUNDS_READ, "key_cache"] == [4 * stride, 5 * stride]
