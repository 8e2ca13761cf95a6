from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.ops import NOBODY, Owners, Tensor
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")
BOUND = 2.0**-20  # of RMS(error) / RMS: sums of up to 6 fp32 products against fp64


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    counts = draw(st.lists(st.integers(0, 20), max_size=4))
    dim, width = draw(st.sampled_from([1, 3, 16, 17, 40])), draw(st.integers(1, 6))
    tokens, blocks = sum(counts), len(counts) + 2
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def numbers(*shape: int) -> Any:
        return random.normal(size=shape).astype(np.float32)

    index = 1 + random.permutation(blocks - 1)[: len(counts)]
    index[random.random(len(counts)) < 0.2] = draw(st.sampled_from([0, -1]))
    return {
        "x": numbers(tokens, dim + draw(st.integers(0, 3)))[:, :dim],
        "weight": numbers(dim, width),
        "state": numbers(blocks, dim, width - 1),
        "state_index": index.astype(np.int32),
        "query_start": np.cumsum([0, *counts], dtype=np.int32),
        "out": np.full((tokens, dim + 1), 7, np.float32)[:, :dim],
    }


def convolved(batch: dict[str, Any]) -> tuple[Any, Any]:
    """numpy's full convolution of every channel in fp64, cut to the tokens."""
    out, state = batch["out"].astype(np.float64), batch["state"].copy()
    dim, width = batch["weight"].shape
    for request, block in enumerate(batch["state_index"].tolist()):
        first, last = batch["query_start"][request : request + 2].tolist()
        if block <= 0 or first == last:
            continue
        for channel in range(dim):
            series = np.concatenate([state[block, channel], batch["x"][first:last, channel]])
            kernel = batch["weight"][channel, ::-1].astype(np.float64)
            out[first:last, channel] = np.convolve(series.astype(np.float64), kernel, "valid")
            state[block, channel] = series[len(series) - (width - 1) :]
    return out, state


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_reference_is_a_convolution_and_moves_the_history_on(
    bench: Any, batch: dict[str, Any]
) -> None:
    run = bench.reference("conv_state", **batch)
    out, state = convolved(batch)
    assert np.linalg.norm(run.tensors["out"] - out) <= BOUND * max(1, float(np.linalg.norm(out)))
    assert run.tensors["state"].tolist() == state.tolist()
    assert run.wrong == {}


@given(batch=batches())
@settings(max_examples=20, deadline=None)
def test_device_kernel_gives_the_bits_of_the_reference(bench: Any, batch: dict[str, Any]) -> None:
    run = bench.emulator("conv_state", **batch)
    wanted = bench.reference("conv_state", **batch)
    for name in ("out", "state"):
        assert run.tensors[name].tolist() == wanted.tensors[name].tolist()
    assert run.wrong == {}


def one_request(tokens: int, block: int = 1, **changes: Any) -> dict[str, Any]:
    """Two channels, width 3; block b holds b everywhere, the tokens count from 1 on."""
    return {
        "x": np.arange(1, 2 * tokens + 1, dtype=np.float32).reshape(tokens, 2),
        "weight": np.array([[100, 10, 1], [100, 10, 1]], np.float32),
        "state": np.repeat(np.arange(4, dtype=np.float32), 4).reshape(4, 2, 2),
        "state_index": np.array([block], np.int32),
        "query_start": np.array([0, tokens], np.int32),
        "out": np.full((tokens, 2), np.nan, np.float32),
        **changes,
    }


@pytest.mark.parametrize("lane", LANES)
def test_last_column_of_the_weight_is_the_current_token(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)("conv_state", **one_request(1, block=2))
    assert run.tensors["out"].tolist() == [[221, 222]]
    assert run.tensors["state"][2].tolist() == [[2, 1], [2, 2]]


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("cut", [1, 2, 9, 17])
def test_launches_in_pieces_give_the_bits_of_one_launch(bench: Any, lane: str, cut: int) -> None:
    random = np.random.default_rng(cut)
    x = random.normal(size=(18, 2)).astype(np.float32)
    whole = getattr(bench, lane)("conv_state", **one_request(18, x=x))
    state, out = one_request(1)["state"], list[list[float]]()
    for piece in (x[:cut], x[cut:]):
        run = getattr(bench, lane)("conv_state", **one_request(len(piece), x=piece, state=state))
        state, out = run.tensors["state"], [*out, *run.tensors["out"].tolist()]
    assert out == whole.tensors["out"].tolist()
    assert state.tolist() == whole.tensors["state"].tolist()


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(("block", "tokens"), [(0, 2), (-1, 2), (1, 0), (9, 0)])
def test_null_block_or_no_token_leaves_everything_as_it_is(
    bench: Any, lane: str, block: int, tokens: int
) -> None:
    given = one_request(tokens, block)
    run = getattr(bench, lane)("conv_state", **given)
    assert np.isnan(run.tensors["out"]).all()
    assert run.tensors["state"].tolist() == given["state"].tolist()
    assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("block", [4, 2**31 - 1])
def test_index_past_the_state_is_read_and_written_there(bench: Any, lane: str, block: int) -> None:
    run = getattr(bench, lane)("conv_state", **one_request(1, block))
    elements = list(range(4 * block, 4 * block + 4))
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "state"): elements,
        (Kind.OUT_OF_BOUNDS_WRITE, "state"): elements,
    }
    assert run.tensors["out"].tolist() == [[1, 2]]


@pytest.mark.parametrize("lane", LANES)
def test_state_of_another_request_is_foreign_read_and_written(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)(
        "conv_state",
        **one_request(2, block=3),
        owners={"state": Owners(4, np.array([NOBODY, 0, 0, 1], np.int32))},
        requests=np.array([0], np.int32),
    )
    assert run.wrong == {
        (Kind.FOREIGN_READ, "state"): [12, 13, 14, 15],
        (Kind.FOREIGN_WRITE, "state"): [12, 13, 14, 15],
    }
    assert run.tensors["out"].tolist() == [[331, 332], [313, 324]]


@pytest.mark.parametrize("lane", LANES)
def test_tokens_past_the_inputs_are_read_and_written_past_the_end(bench: Any, lane: str) -> None:
    given = one_request(2, query_start=np.array([1, 3], np.int32))
    run = getattr(bench, lane)("conv_state", **given)
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "x"): [4, 5],
        (Kind.OUT_OF_BOUNDS_WRITE, "out"): [4, 5],
    }


@pytest.mark.parametrize("lane", LANES)
def test_offsets_past_32_bits_are_not_wrapped(bench: Any, lane: str) -> None:
    stride = 2**31 - 1
    state = Tensor("state", np.zeros(8, np.float32), (4, 2, 2), strides=(stride, 2, 1))
    x = Tensor("x", np.zeros(2, np.float32), (3, 2), strides=(stride, 1))
    out = Tensor("out", np.zeros(2, np.float32), (3, 2), strides=(stride, 1))
    start = np.array([2, 5], np.int32)
    given = one_request(3, 3, state=state, x=x, out=out, query_start=start)
    run = getattr(bench, lane)("conv_state", **given)
    rows = [row * stride + channel for row in (2, 3, 4) for channel in (0, 1)]
    block = list(range(3 * stride, 3 * stride + 4))
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "x"): rows,
        (Kind.OUT_OF_BOUNDS_WRITE, "out"): rows,
        (Kind.OUT_OF_BOUNDS_READ, "state"): block,
        (Kind.OUT_OF_BOUNDS_WRITE, "state"): block,
    }
