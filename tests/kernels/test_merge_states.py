from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import specrepro
from specrepro.repro.ops import Owners
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")
# RMS(error) / RMS. The reference keeps fp64 until it stores; exponentials of a device are rough.
REFERENCE_BOUND = 2.0**-22
DEVICE_BOUND = 2.0**-18


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    """Chunks of requests in order, after some words of another part of the plan."""
    counts = draw(st.lists(st.integers(0, 6), max_size=4))
    heads, dim = draw(st.sampled_from([(1, 1), (2, 8), (3, 33)]))
    before = draw(st.integers(0, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    chunks = sum(counts)
    lse = random.normal(0, draw(st.sampled_from([1, 20])), (chunks, heads)).astype(np.float32)
    lse[random.random(lse.shape) < 0.2] = -np.inf
    partial = random.normal(size=(chunks, heads, dim)).astype(np.float32)
    return {
        "partial_out": partial,
        "partial_lse": lse,
        "split": np.array([9] * before + np.cumsum([0, *counts]).tolist(), np.int32),
        "out": np.full((len(counts), heads + draw(st.integers(0, 2)), dim), 7, np.float32)[
            :, :heads
        ],
        "indptr_at": before,
    }


def weighted(batch: dict[str, Any]) -> Any:
    """Plain weights exp(lse), which fp64 holds for these, over their sum."""
    at, out = batch["indptr_at"], np.zeros(batch["out"].shape)
    for request in range(len(out)):
        chunks = slice(*batch["split"][at + request : at + request + 2].tolist())
        for head in range(out.shape[1]):
            weights = np.exp(batch["partial_lse"][chunks, head].astype(np.float64))
            if weights.sum() > 0:
                out[request, head] = weights @ batch["partial_out"][chunks, head] / weights.sum()
    return out


def assert_close(got: Any, wanted: Any, bound: float) -> None:
    """Against values of size 1, which a sum that cancels is made of."""
    error = np.linalg.norm(got.astype(np.float64) - wanted)
    assert error <= bound * max(1, float(np.linalg.norm(wanted)))


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_reference_is_the_weighted_mean(bench: Any, batch: dict[str, Any]) -> None:
    run = bench.reference("merge_states", **batch)
    assert_close(run.tensors["out"], weighted(batch), REFERENCE_BOUND)
    assert run.wrong == {}


@given(batch=batches())
@settings(max_examples=25, deadline=None)
def test_device_kernel_is_within_fp32_rounding_of_the_reference(
    bench: Any, batch: dict[str, Any]
) -> None:
    run = bench.emulator("merge_states", **batch)
    wanted = bench.reference("merge_states", **batch).tensors["out"].astype(np.float64)
    assert_close(run.tensors["out"], wanted, DEVICE_BOUND)
    assert run.wrong == {}


def merge(indptr: list[int], **changes: Any) -> dict[str, Any]:
    """Four chunks, two heads, two dimensions; the partial results of chunk c are c."""
    chunk = np.arange(4, dtype=np.float32)
    return {
        "partial_out": np.repeat(chunk, 4).reshape(4, 2, 2),
        "partial_lse": np.zeros((4, 2), np.float32),
        "split": np.array(indptr, np.int32),
        "out": np.full((len(indptr) - 1, 2, 2), 7, np.float32),
        "indptr_at": 0,
        **changes,
    }


@pytest.mark.parametrize("lane", LANES)
def test_no_chunk_and_only_weightless_chunks_give_zero(bench: Any, lane: str) -> None:
    lse = np.array([[-np.inf] * 2, [-np.inf, 0], [0, 0], [0, 0]], np.float32)
    run = getattr(bench, lane)("merge_states", **merge([0, 0, 2, 2, 1], partial_lse=lse))
    assert run.tensors["out"][:, :, 0].tolist() == [[0, 0], [0, 1], [0, 0], [0, 0]]
    assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(("first", "last"), [(2, 7), (33621, 33623), (-2, 1)])
def test_plan_of_another_step_reads_outside_the_partials_and_writes_in_place(
    bench: Any, lane: str, first: int, last: int
) -> None:
    run = getattr(bench, lane)("merge_states", **merge([first, last]))
    outside = [chunk for chunk in range(first, last) if not 0 <= chunk < 4]
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "partial_lse"): [2 * c + i for c in outside for i in range(2)],
        (Kind.OUT_OF_BOUNDS_READ, "partial_out"): [4 * c + i for c in outside for i in range(4)],
    }
    inside = [chunk for chunk in range(first, last) if 0 <= chunk < 4]
    assert run.tensors["out"].ravel() == pytest.approx(sum(inside) / (last - first), rel=1e-6)


@pytest.mark.parametrize("lane", LANES)
def test_stated_memory_behind_the_partials_is_merged(bench: Any, lane: str) -> None:
    behind = {"partial_out": np.full(4, 100, np.float32), "partial_lse": np.zeros(2, np.float32)}
    run = getattr(bench, lane)("merge_states", **merge([3, 5]), behind=behind)
    assert run.tensors["out"].ravel() == pytest.approx((3 + 100) / 2, rel=1e-6)


@pytest.mark.parametrize("lane", LANES)
def test_chunks_of_another_request_are_foreign(bench: Any, lane: str) -> None:
    owners = Owners(4, np.array([0, 0, 1, 1], np.int32))
    run = getattr(bench, lane)(
        "merge_states",
        **merge([0, 3, 4]),
        owners={"partial_out": owners},
        requests=np.array([0, 1], np.int32),
    )
    assert run.wrong == {(Kind.FOREIGN_READ, "partial_out"): [8, 9, 10, 11]}


@pytest.mark.parametrize("lane", LANES)
def test_plan_shorter_than_the_batch_is_read_past_its_end(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("merge_states", **merge([0, 2], out=np.zeros((2, 2, 2), np.float32)))
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "split"): [2]}
    assert run.tensors["out"][1].tolist() == [[0, 0], [0, 0]]  # chunks 2 up to 0


@pytest.mark.parametrize("lane", LANES)
def test_chunk_offset_past_32_bits_is_not_wrapped(bench: Any, lane: str) -> None:
    chunk = 2**31 - 2
    run = getattr(bench, lane)("merge_states", **merge([chunk, chunk + 1]))
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "partial_lse"): [2 * chunk, 2 * chunk + 1],
        (Kind.OUT_OF_BOUNDS_READ, "partial_out"): [4 * chunk + i for i in range(4)],
    }


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("lse", [np.nan, np.inf])
def test_partial_that_is_no_number_shows(bench: Any, lane: str, lse: float) -> None:
    changed = np.zeros((4, 2), np.float32)
    changed[1, 0] = lse
    run = getattr(bench, lane)("merge_states", **merge([0, 3], partial_lse=changed))
    assert np.isnan(run.tensors["out"]).tolist() == [[[True, True], [False, False]]]


def test_reads_of_weights_and_values_name_their_own_source_lines(bench: Any) -> None:
    run = bench.emulator("merge_states", **merge([3, 5]))
    source = (Path(specrepro.__file__).parent / "kernels/merge_states/kernel.cu").read_text()
    for tensor in ("partial_out", "partial_lse"):
        (line,) = run.lines[Kind.OUT_OF_BOUNDS_READ, tensor]
        assert f"= {tensor}[at" in source.splitlines()[line - 1]
