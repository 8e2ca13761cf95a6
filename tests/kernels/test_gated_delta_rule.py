from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.ops import NOBODY, Owners, Tensor
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")
# RMS(error) / RMS. The reference rounds the state once a token; the device also sums in fp32.
REFERENCE_BOUND = 2.0**-22
DEVICE_BOUND = 2.0**-19


def tokens_of(
    random: np.random.Generator, tokens: int, heads: int, key: int, value: int
) -> dict[str, Any]:
    """Inputs as a layer makes them: keys and queries of length one, gates within (0, 1)."""
    q, k = random.normal(size=(2, tokens, heads, key))
    return {
        "q": (q / np.linalg.norm(q, axis=-1, keepdims=True)).astype(np.float32),
        "k": (k / np.linalg.norm(k, axis=-1, keepdims=True)).astype(np.float32),
        "v": random.normal(size=(tokens, heads, value)).astype(np.float32),
        "decay": -random.exponential(0.5, (tokens, heads)).astype(np.float32),
        "beta": random.random((tokens, heads), np.float32),
        "out": np.full((tokens, heads, value), 7, np.float32),
    }


@st.composite
def batches(draw: st.DrawFn, longest: int = 9) -> dict[str, Any]:
    """Every request has state blocks of its own, one a column; a few are the null block."""
    counts = draw(st.lists(st.integers(0, longest), max_size=3))
    requests, columns = len(counts), max([1, *counts]) + draw(st.integers(0, 2))
    heads, key, value = draw(st.sampled_from([(1, 1, 1), (2, 8, 8), (1, 16, 16), (3, 5, 7)]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blocks = requests * columns + 1
    index = 1 + random.permutation(blocks - 1).reshape(requests, columns)
    index[random.random(index.shape) < 0.1] = draw(st.sampled_from([0, -1]))
    accepted = random.integers(1, columns + 1, requests).astype(np.int32)
    return {
        **tokens_of(random, sum(counts), heads, key, value),
        "state": random.normal(size=(blocks, heads, value, key)).astype(np.float32),
        "state_index": index.astype(np.int32),
        "accepted": draw(st.sampled_from([None, accepted])),
        "query_start": np.cumsum([0, *counts], dtype=np.int32),
    }


def by_transition_matrices(batch: dict[str, Any]) -> tuple[Any, Any]:
    """S_t = S_{t-1} e^g (1 - b k k^T) + b v k^T in fp64: out and state."""
    out, state = batch["out"].astype(np.float64), batch["state"].astype(np.float64)
    accepted = batch["accepted"]
    for request, index in enumerate(batch["state_index"].tolist()):
        first, last = batch["query_start"][request : request + 2].tolist()
        start = index[0 if accepted is None else accepted[request] - 1]
        if start <= 0 or first == last:
            continue
        for head in range(out.shape[1]):
            s = batch["state"][start, head].astype(np.float64)
            for t in range(first, last):
                q, k, v = (batch[name][t, head].astype(np.float64) for name in "qkv")
                b = float(batch["beta"][t, head])
                kept = np.exp(float(batch["decay"][t, head])) * (
                    np.eye(k.size) - b * np.outer(k, k)
                )
                s = s @ kept + b * np.outer(v, k)
                out[t, head] = s @ q
                target = index[t - first] if accepted is not None else 0
                if target > 0:
                    state[target, head] = s
            if accepted is None:
                state[start, head] = s
    return out, state


def assert_close(got: Any, wanted: Any, bound: float) -> None:
    """Against values of size 1, which a sum that cancels is made of."""
    error = np.linalg.norm(got.astype(np.float64) - wanted)
    assert error <= bound * max(1, float(np.linalg.norm(wanted)))


@given(batch=batches())
@settings(max_examples=60, deadline=None)
def test_reference_is_a_product_of_transition_matrices(bench: Any, batch: dict[str, Any]) -> None:
    run = bench.reference("gated_delta_rule", **batch)
    out, state = by_transition_matrices(batch)
    assert_close(run.tensors["out"], out, REFERENCE_BOUND)
    assert_close(run.tensors["state"], state, REFERENCE_BOUND)
    assert run.wrong == {}


@given(batch=batches(longest=4))
@settings(max_examples=20, deadline=None)
def test_device_kernel_is_within_fp32_rounding_of_the_reference(
    bench: Any, batch: dict[str, Any]
) -> None:
    run = bench.emulator("gated_delta_rule", **batch)
    wanted = bench.reference("gated_delta_rule", **batch)
    for name in ("out", "state"):
        assert_close(run.tensors[name], wanted.tensors[name].astype(np.float64), DEVICE_BOUND)
    assert run.wrong == {}


def one_request(tokens: int, index: list[int], **changes: Any) -> dict[str, Any]:
    """One head, dimensions 2 and 2, six states; the request has the row `index`."""
    random = np.random.default_rng(tokens)
    return {
        **tokens_of(random, tokens, 1, 2, 2),
        "state": np.random.default_rng(0).normal(size=(6, 1, 2, 2)).astype(np.float32),
        "state_index": np.array([index], np.int32),
        "accepted": None,
        "query_start": np.array([0, tokens], np.int32),
        **changes,
    }


def piece(given: dict[str, Any], tokens: slice, **changes: Any) -> dict[str, Any]:
    cut = {name: given[name][tokens] for name in ("q", "k", "v", "decay", "beta", "out")}
    return {**given, **cut, "query_start": np.array([0, len(cut["q"])], np.int32), **changes}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("cut", [1, 4, 6])
def test_launches_in_pieces_give_the_bits_of_one_launch(bench: Any, lane: str, cut: int) -> None:
    whole = one_request(7, [2])
    run = getattr(bench, lane)
    once = run("gated_delta_rule", **whole).tensors
    head = run("gated_delta_rule", **piece(whole, slice(cut))).tensors
    rest = piece(whole, slice(cut, None), state=head["state"])
    tail = run("gated_delta_rule", **rest).tensors
    assert [*head["out"].tolist(), *tail["out"].tolist()] == once["out"].tolist()
    assert tail["state"].tolist() == once["state"].tolist()


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("accepted", [1, 2, 3])
def test_step_after_a_refusal_goes_on_from_the_last_accepted_token(
    bench: Any, lane: str, accepted: int
) -> None:
    """Three tokens verified, some accepted, one more token: as if the refused never were."""
    tokens, run = one_request(4, [1, 2, 3]), getattr(bench, lane)
    first = {"accepted": np.array([1], np.int32)}
    then = {"accepted": np.array([accepted], np.int32)}
    verified = run("gated_delta_rule", **piece(tokens, slice(3), **first)).tensors
    step = piece(tokens, slice(3, 4), **then, state=verified["state"])
    after = run("gated_delta_rule", **step).tensors
    kept = piece(tokens, [*range(accepted), 3])  # type: ignore[arg-type]
    wanted = run("gated_delta_rule", **kept).tensors
    assert after["out"][0].tolist() == wanted["out"][-1].tolist()
    assert after["state"][1].tolist() == wanted["state"][1].tolist()


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("start", [0, -1])
def test_null_start_leaves_out_and_state_as_they_are(bench: Any, lane: str, start: int) -> None:
    for accepted in (None, np.array([1], np.int32)):
        given = one_request(2, [start, 3], accepted=accepted)
        run = getattr(bench, lane)("gated_delta_rule", **given)
        assert run.tensors["out"].tolist() == given["out"].tolist()
        assert run.tensors["state"].tolist() == given["state"].tolist()
        assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
def test_null_target_is_computed_but_not_written(bench: Any, lane: str) -> None:
    given = one_request(2, [2, 0], accepted=np.array([1], np.int32))
    run = getattr(bench, lane)("gated_delta_rule", **given)
    unlike = (run.tensors["state"] != given["state"]).any((1, 2, 3))
    assert np.flatnonzero(unlike).tolist() == [2]
    assert (run.tensors["out"] != 7).all()


def two_requests(accepted: list[int], tokens: int = 1) -> dict[str, Any]:
    given = one_request(2 * tokens, [])
    return {
        **given,
        "state_index": np.array([[1, 2], [3, 4]], np.int32),
        "accepted": np.array(accepted, np.int32),
        "query_start": np.array([0, tokens, 2 * tokens], np.int32),
    }


@pytest.mark.parametrize("lane", LANES)
def test_no_accepted_token_reads_the_index_before_the_row(bench: Any, lane: str) -> None:
    given = two_requests([0, 0])
    run = getattr(bench, lane)(
        "gated_delta_rule",
        **given,
        owners={"state_index": Owners(2, np.array([0, 1], np.int32))},
        requests=np.array([0, 1], np.int32),
    )
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "state_index"): [-1],
        (Kind.FOREIGN_READ, "state_index"): [1],
    }
    assert run.tensors["out"][0].tolist() == given["out"][0].tolist()  # the index read was 0
    assert (run.tensors["out"][1] != given["out"][1]).all()


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("count", [3, 2**31 - 1, -(2**31) + 1])
def test_count_past_the_columns_reads_behind_the_row(bench: Any, lane: str, count: int) -> None:
    given = two_requests([1, count])
    run = getattr(bench, lane)("gated_delta_rule", **given)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "state_index"): [2 + count - 1]}
    assert run.tensors["out"][1].tolist() == given["out"][1].tolist()


@pytest.mark.parametrize("lane", LANES)
def test_count_past_an_inner_row_starts_from_the_neighbours_state(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)(
        "gated_delta_rule",
        **two_requests([3, 1]),
        owners={"state": Owners(4, np.array([NOBODY, 0, 0, 1, 1, NOBODY], np.int32))},
        requests=np.array([0, 1], np.int32),
    )
    assert run.wrong == {(Kind.FOREIGN_READ, "state"): [12, 13, 14, 15]}


@pytest.mark.parametrize("lane", LANES)
def test_more_tokens_than_columns_write_the_neighbours_states(bench: Any, lane: str) -> None:
    run = getattr(bench, lane)(
        "gated_delta_rule",
        **two_requests([1, 1], tokens=3),
        owners={"state": Owners(4, np.array([NOBODY, 0, 0, 1, 1, NOBODY], np.int32))},
        requests=np.array([0, 1], np.int32),
    )
    assert run.wrong == {
        (Kind.FOREIGN_WRITE, "state"): [12, 13, 14, 15],
        (Kind.OUT_OF_BOUNDS_READ, "state_index"): [4],
    }


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("block", [6, 2**31 - 1])
def test_index_past_the_state_is_read_and_written_there(bench: Any, lane: str, block: int) -> None:
    elements = list(range(4 * block, 4 * block + 4))
    run = getattr(bench, lane)("gated_delta_rule", **one_request(1, [block]))
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "state"): elements,
        (Kind.OUT_OF_BOUNDS_WRITE, "state"): elements,
    }
    given = one_request(1, [block, 1], accepted=np.array([2], np.int32))
    run = getattr(bench, lane)("gated_delta_rule", **given)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_WRITE, "state"): elements}


@pytest.mark.parametrize("lane", LANES)
def test_offsets_past_32_bits_are_not_wrapped(bench: Any, lane: str) -> None:
    stride = 2**31 - 1
    state = Tensor("state", np.zeros(4, np.float32), (6, 1, 2, 2), strides=(stride, 4, 2, 1))
    run = getattr(bench, lane)("gated_delta_rule", **one_request(1, [5], state=state))
    elements = list(range(5 * stride, 5 * stride + 4))
    assert run.wrong[Kind.OUT_OF_BOUNDS_READ, "state"] == elements
    index = Tensor("state_index", np.ones(1, np.int32), (3, 1), strides=(stride, 1))
    given = one_request(3, [], state_index=index, query_start=np.arange(4, dtype=np.int32))
    run = getattr(bench, lane)("gated_delta_rule", **given)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "state_index"): [stride, 2 * stride]}
