from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.ops import Owners, Tensor
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")
# RMS(error) / RMS; fp16 in, fp32 out. The reference keeps fp64 until it stores.
REFERENCE_BOUND = 2.0**-22
DEVICE_BOUND = 2.0**-18


@st.composite
def batches(draw: st.DrawFn, longest: int = 90) -> dict[str, Any]:
    """Requests of one token and the chunks of a plan; `lengths` and `chunks` for the oracle."""
    requests = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, longest), min_size=requests, max_size=requests))
    block_size = draw(st.sampled_from([1, 7, 16]))
    pages = [-(-length // block_size) for length in lengths]
    pages_in_chunk = draw(st.integers(1, max(pages) + 1))
    chunks = [
        (request, tile)
        for request, count in enumerate(pages)
        for tile in range(-(-count // pages_in_chunk) + draw(st.integers(0, 1)))
    ]
    kv_heads, group = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 3)]))
    dim = draw(st.sampled_from([1, 3, 8, 33]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blocks, heads = sum(pages) + 2, kv_heads * group
    before, between = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    plan = [9] * before + [r for r, _ in chunks] + [9] * between + [t for _, t in chunks]

    def numbers(*shape: int) -> Any:
        return random.normal(0, 1, shape).astype(np.float16)

    return {
        "query": numbers(requests, heads + draw(st.integers(0, 2)), dim)[:, :heads],
        "key_cache": numbers(blocks * block_size, kv_heads, dim),
        "value_cache": numbers(blocks * block_size, kv_heads, dim),
        "page_indptr": np.cumsum([0, *pages], dtype=np.int32),
        "page_indices": random.permutation(blocks)[: sum(pages)].astype(np.int32),
        "last_page_len": np.array(
            [
                length - (count - 1) * block_size
                for length, count in zip(lengths, pages, strict=True)
            ],
            np.int32,
        ),
        "split": np.array(plan, np.int32),
        "partial_out": np.full((len(chunks), heads, dim), np.nan, np.float32),
        "partial_lse": np.full((len(chunks), heads), np.nan, np.float32),
        "chunks": len(chunks),
        "pages_in_chunk": pages_in_chunk,
        "request_at": before,
        "tile_at": before + len(chunks) + between,
        "block_size": block_size,
        "scale": draw(st.sampled_from([1.0, 0.25])),
    }


def seen_by(batch: dict[str, Any], request: int) -> tuple[Any, Any, Any]:
    """query [heads, dim], keys and values [length, heads, dim] of a request, token by token."""
    size = batch["block_size"]
    pages = batch["page_indices"][slice(*batch["page_indptr"][request : request + 2])].tolist()
    slots = [slot for page in pages for slot in range(page * size, page * size + size)]
    slots = slots[: len(slots) - size + int(batch["last_page_len"][request])]
    query = batch["query"][request].astype(np.float64)
    group = len(query) // batch["key_cache"].shape[1]
    key, value = (
        np.repeat(batch[name][slots].astype(np.float64), group, axis=1)
        for name in ("key_cache", "value_cache")
    )
    return query, key, value


def chunk_by_chunk(batch: dict[str, Any]) -> tuple[Any, Any]:
    """partial_out and partial_lse: the exponentials of a whole request, then a slice of them."""
    out, lse = np.zeros(batch["partial_out"].shape), np.full(batch["partial_lse"].shape, -np.inf)
    tokens = batch["pages_in_chunk"] * batch["block_size"]
    for chunk in range(batch["chunks"]):
        request = int(batch["split"][batch["request_at"] + chunk])
        tile = int(batch["split"][batch["tile_at"] + chunk])
        query, key, value = seen_by(batch, request)
        inside = slice(tile * tokens, tile * tokens + tokens)
        weights = np.exp(np.einsum("hd,thd->th", query, key) * batch["scale"])[inside]
        if len(weights):
            lse[chunk] = np.log(weights.sum(0))
            out[chunk] = np.einsum("th,thd->hd", weights / weights.sum(0), value[inside])
    return out, lse


def assert_close(got: Any, wanted: Any, bound: float) -> None:
    """Against values of size 1, which a sum that cancels is made of."""
    known = np.isfinite(wanted)
    assert got[~known].tolist() == wanted[~known].tolist()
    error = np.linalg.norm(got[known].astype(np.float64) - wanted[known])
    assert error <= bound * max(1, float(np.linalg.norm(wanted[known])))


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_reference_is_softmax_over_each_chunk(bench: Any, batch: dict[str, Any]) -> None:
    run = bench.reference("planned_attention", **batch)
    out, lse = chunk_by_chunk(batch)
    assert_close(run.tensors["partial_out"], out, REFERENCE_BOUND)
    assert_close(run.tensors["partial_lse"], lse, REFERENCE_BOUND)
    assert run.wrong == {}


@given(batch=batches(longest=40))
@settings(max_examples=20, deadline=None)
def test_device_kernel_is_within_fp32_rounding_of_the_reference(
    bench: Any, batch: dict[str, Any]
) -> None:
    run = bench.emulator("planned_attention", **batch)
    wanted = bench.reference("planned_attention", **batch)
    for name in ("partial_out", "partial_lse"):
        assert_close(run.tensors[name], wanted.tensors[name].astype(np.float64), DEVICE_BOUND)
    assert run.wrong == {}


@given(batch=batches(longest=40))
@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("lane", LANES)
def test_merged_chunks_are_attention_over_the_request(
    bench: Any, lane: str, batch: dict[str, Any]
) -> None:
    run = getattr(bench, lane)("planned_attention", **batch)
    requests = len(batch["query"])
    owner = batch["split"][batch["request_at"] :][: batch["chunks"]]
    merged = getattr(bench, lane)(
        "merge_states",
        partial_out=run.tensors["partial_out"],
        partial_lse=run.tensors["partial_lse"],
        split=np.searchsorted(owner, np.arange(requests + 1)).astype(np.int32),
        out=np.zeros((requests, *batch["partial_out"].shape[1:]), np.float32),
        indptr_at=0,
    )
    wanted = np.zeros(merged.tensors["out"].shape)
    for request in range(requests):
        query, key, value = seen_by(batch, request)
        weights = np.exp(np.einsum("hd,thd->th", query, key) * batch["scale"])
        wanted[request] = np.einsum("th,thd->hd", weights / weights.sum(0), value)
    assert_close(merged.tensors["out"], wanted, DEVICE_BOUND)


def one_chunk(request: int, tile: int, **changes: Any) -> dict[str, Any]:
    """Two requests of two pages of 4 and one head; values are their slots, weights are equal."""
    slots = np.arange(24, dtype=np.float16).reshape(24, 1, 1)
    return {
        "query": np.zeros((2, 1, 1), np.float16),
        "key_cache": slots,
        "value_cache": slots,
        "page_indptr": np.array([0, 2, 4], np.int32),
        "page_indices": np.array([1, 2, 3, 4], np.int32),
        "last_page_len": np.array([2, 4], np.int32),
        "split": np.array([request, tile], np.int32),
        "partial_out": np.full((1, 1, 1), np.nan, np.float32),
        "partial_lse": np.full((1, 1), np.nan, np.float32),
        "chunks": 1,
        "pages_in_chunk": 1,
        "request_at": 0,
        "tile_at": 1,
        "block_size": 4,
        "scale": 1.0,
        **changes,
    }


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(
    ("request_", "tile", "slots"),
    [(0, 0, [4, 5, 6, 7]), (0, 1, [8, 9]), (1, 0, [12, 13, 14, 15]), (1, 1, [16, 17, 18, 19])],
)
def test_chunk_covers_its_pages_and_the_last_page_to_its_length(
    bench: Any, lane: str, request_: int, tile: int, slots: list[int]
) -> None:
    run = getattr(bench, lane)("planned_attention", **one_chunk(request_, tile))
    assert run.tensors["partial_out"].item() == pytest.approx(sum(slots) / len(slots), rel=1e-6)
    assert run.tensors["partial_lse"].item() == pytest.approx(np.log(len(slots)), rel=1e-6)
    assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("tile", [2, 3, 2**31 - 1])
def test_chunk_past_the_pages_is_empty_and_reads_no_cache(bench: Any, lane: str, tile: int) -> None:
    run = getattr(bench, lane)("planned_attention", **one_chunk(0, tile))
    assert run.tensors["partial_out"].tolist() == [[[0]]]
    assert run.tensors["partial_lse"].tolist() == [[-np.inf]]
    assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
def test_request_of_a_larger_batch_reads_the_engines_plan_past_its_end(
    bench: Any, lane: str
) -> None:
    run = getattr(bench, lane)("planned_attention", **one_chunk(7, 0))
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "page_indptr"): [7, 8],
        (Kind.OUT_OF_BOUNDS_READ, "last_page_len"): [7],
    }
    assert run.tensors["partial_lse"].tolist() == [[-np.inf]]


@pytest.mark.parametrize("lane", LANES)
def test_request_just_past_the_batch_reads_query_and_pages_behind(bench: Any, lane: str) -> None:
    behind = {
        "page_indptr": np.array([6], np.int32),
        "last_page_len": np.array([1], np.int32),
        "page_indices": np.array([0, 5], np.int32),
    }
    run = getattr(bench, lane)(
        "planned_attention", **one_chunk(2, 0, pages_in_chunk=2), behind=behind
    )
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "page_indptr"): [3],
        (Kind.OUT_OF_BOUNDS_READ, "last_page_len"): [2],
        (Kind.OUT_OF_BOUNDS_READ, "page_indices"): [4, 5],
        (Kind.OUT_OF_BOUNDS_READ, "query"): [2],
    }
    assert run.tensors["partial_out"].item() == pytest.approx((0 + 1 + 2 + 3 + 20) / 5, rel=1e-6)


@pytest.mark.parametrize("lane", LANES)
def test_last_page_length_of_another_step_reads_past_the_page(bench: Any, lane: str) -> None:
    lengths = np.array([2, 6], np.int32)
    run = getattr(bench, lane)(
        "planned_attention", **one_chunk(1, 0, last_page_len=lengths, pages_in_chunk=3)
    )
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "page_indices"): [4]}
    slots = [*range(12, 20), 0, 1]
    assert run.tensors["partial_out"].item() == pytest.approx(np.mean(slots), rel=1e-6)


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("page", [6, 2**29, 2**31 - 1, -1])
def test_bad_page_is_read_at_its_own_element(bench: Any, lane: str, page: int) -> None:
    indices = np.array([1, page, 3, 4], np.int32)
    run = getattr(bench, lane)("planned_attention", **one_chunk(0, 1, page_indices=indices))
    elements = [page * 4, page * 4 + 1]
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "key_cache"): elements,
        (Kind.OUT_OF_BOUNDS_READ, "value_cache"): elements,
    }


@pytest.mark.parametrize("lane", LANES)
def test_chunk_of_another_request_reads_its_pages(bench: Any, lane: str) -> None:
    owners = Owners(4, np.array([0, 0, 0, 1, 1, 1], np.int32))
    run = getattr(bench, lane)(
        "planned_attention",
        **one_chunk(1, 0),
        owners={"value_cache": owners},
        requests=np.array([0], np.int32),
    )
    assert run.wrong == {(Kind.FOREIGN_READ, "value_cache"): [12, 13, 14, 15]}


@pytest.mark.parametrize("lane", LANES)
def test_negative_chunk_number_is_divided_towards_zero_as_on_the_device(
    bench: Any, lane: str
) -> None:
    run = getattr(bench, lane)("planned_attention", **one_chunk(0, -1))
    slots = [1 * 4 + offset for offset in (0, -1, -2, -3)]  # page -1 of the request, then page 0
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "page_indices"): [-1]}
    assert run.tensors["partial_out"].item() == pytest.approx((sum(slots[1:]) + 0) / 4, rel=1e-6)


@pytest.mark.parametrize("lane", LANES)
def test_offsets_past_32_bits_are_not_wrapped(bench: Any, lane: str) -> None:
    stride = 2**31 - 1
    query = Tensor("query", np.zeros(1, np.float16), (2, 1, 1), strides=(stride, 1, 1))
    cache = Tensor("key_cache", np.zeros(1, np.float16), (24, 1, 1), strides=(stride, 1, 1))
    run = getattr(bench, lane)("planned_attention", **one_chunk(1, 1, query=query, key_cache=cache))
    assert run.wrong[Kind.OUT_OF_BOUNDS_READ, "query"] == [stride]
    assert run.wrong[Kind.OUT_OF_BOUNDS_READ, "key_cache"] == [s * stride for s in range(16, 20)]


@pytest.mark.parametrize("lane", LANES)
def test_plan_offsets_past_32_bits_are_not_wrapped(bench: Any, lane: str) -> None:
    top = 2**31 - 1
    given = one_chunk(0, 0, request_at=top - 1, tile_at=top)
    run = getattr(bench, lane)("planned_attention", **given)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "split"): [top - 1, top]}
