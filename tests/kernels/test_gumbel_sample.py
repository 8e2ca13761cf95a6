from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from specrepro.kernels.gumbel_sample.reference import gumbel_noise
from specrepro.repro.ops import Tensor
from specrepro.repro.records import Kind

LANES = ("reference", "emulator")
# Scores are below 64 here, so fp32 keeps them to 2**-18; two logarithms add less than that again.
ROUNDING = 2.0**-17


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    requests, columns = draw(st.integers(0, 4)), draw(st.integers(1, 4))
    vocab = draw(st.sampled_from([1, 2, 16, 31, 33, 70]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    positions = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 100)
    scalar = np.array([draw(st.integers(0, columns - 1))], np.int32)
    return {
        "logits": random.normal(0, 3, (requests, vocab + 2)).astype(np.float32)[:, :vocab],
        "positions": np.array(
            draw(st.lists(positions, min_size=requests, max_size=requests)), np.int64
        ),
        "sampled": np.full(requests, -7, np.int32),
        "processed": np.full((requests, columns, vocab), np.nan, np.float32),
        "column_scalar": draw(st.sampled_from([None, scalar])),
        "column": draw(st.integers(0, columns - 1)),
        "seed": draw(st.integers(-(2**31), 2**31 - 1)),
        "temperature": draw(st.sampled_from([0.0, 0.5, 0.7, 1.0, 1.5])),
    }


def word_by_word_noise(seed: int, position: int, token: int) -> float:
    """The hash as its description says, in integers without a size."""

    def mix(x: int) -> int:
        x = ((x ^ x >> 16) * 0x7FEB352D) & 0xFFFFFFFF
        x = ((x ^ x >> 15) * 0x846CA68B) & 0xFFFFFFFF
        return x ^ x >> 16

    golden, bits = 0x9E3779B9, position & 0xFFFFFFFF_FFFFFFFF
    state = mix(mix(mix((seed + golden) & 0xFFFFFFFF) ^ (bits & 0xFFFFFFFF)) ^ bits >> 32)
    u = ((mix((state + (token + 1) * golden) & 0xFFFFFFFF) >> 9) + 0.5) / 2**23
    return -math.log(-math.log(u))


def scores(batch: dict[str, Any]) -> list[list[float]]:
    temperature = batch["temperature"]
    table = []
    for row, position in zip(batch["logits"], batch["positions"].tolist(), strict=True):
        if temperature == 0:
            table.append(row.tolist())
            continue
        kept = (row / np.float32(temperature)).tolist()
        table.append(
            [
                value + word_by_word_noise(batch["seed"], position, token)
                for token, value in enumerate(kept)
            ]
        )
    return table


def check_processed(run: Any, batch: dict[str, Any]) -> None:
    scalar = batch["column_scalar"]
    column = batch["column"] if scalar is None else scalar.item()
    wanted = batch["processed"].copy()
    divisor = np.float32(batch["temperature"] or 1)
    wanted[:, column] = batch["logits"] / divisor
    assert np.array_equal(run.tensors["processed"], wanted, equal_nan=True)
    assert run.wrong == {}


@given(batch=batches())
@settings(max_examples=80, deadline=None)
def test_reference_takes_the_largest_score_of_the_described_noise(
    bench: Any, batch: dict[str, Any]
) -> None:
    run = bench.reference("gumbel_sample", **batch)
    check_processed(run, batch)
    wanted = [row.index(max(row)) for row in scores(batch)]
    assert run.tensors["sampled"].tolist() == wanted


@given(batch=batches())
@settings(max_examples=25, deadline=None)
def test_device_kernel_differs_only_between_candidates_within_rounding(
    bench: Any, batch: dict[str, Any]
) -> None:
    run = bench.emulator("gumbel_sample", **batch)
    check_processed(run, batch)
    for token, row in zip(run.tensors["sampled"].tolist(), scores(batch), strict=True):
        apart = 0.0 if batch["temperature"] == 0 else ROUNDING
        assert max(row) - row[token] <= apart


def one_request(row: list[float], **changes: Any) -> dict[str, Any]:
    return {
        "logits": np.array([row], np.float32),
        "positions": np.array([5], np.int64),
        "sampled": np.array([-7], np.int32),
        "processed": np.zeros((1, 3, len(row)), np.float32),
        "column_scalar": None,
        "column": 0,
        "seed": 1,
        "temperature": 1.0,
        **changes,
    }


def test_hash_stays_what_stored_runs_were_made_with() -> None:
    noise = gumbel_noise(-1, 2**40 + 3, range(3))
    wanted = [-0.5395890669734007, 1.2049165366339962, -0.45609929338627647]
    assert noise == pytest.approx(wanted, rel=1e-14)


def test_noise_depends_on_seed_and_on_both_halves_of_the_position() -> None:
    seen = {
        tuple(gumbel_noise(seed, position, range(4)).tolist())
        for seed in (-1, 0, 1)
        for position in (0, 1, 2**32, 2**32 + 1, -1)
    }
    assert len(seen) == 15


def test_noise_is_a_gumbel_sample_along_tokens_positions_and_seeds() -> None:
    along = {
        "tokens": gumbel_noise(0, 0, np.arange(4000)),
        "positions": np.concatenate([gumbel_noise(0, p, [0]) for p in range(4000)]),
        "seeds": np.concatenate([gumbel_noise(s, 0, [0]) for s in range(4000)]),
    }
    for name, noise in along.items():
        assert stats.kstest(noise, stats.gumbel_r.cdf).pvalue > 0.001, name
        assert abs(stats.pearsonr(noise[1:], noise[:-1]).statistic) < 0.06, name


def test_tokens_follow_the_softmax_of_the_logits(bench: Any) -> None:
    """3000 positions, chi-square against the softmax at temperature 0.8, fixed seed."""
    requests, logits = 3000, np.array([0.0, 1.0, -1.0, 0.5, 2.0], np.float32)
    run = bench.reference(
        "gumbel_sample",
        logits=np.tile(logits, (requests, 1)),
        positions=np.arange(requests, dtype=np.int64),
        sampled=np.zeros(requests, np.int32),
        processed=np.zeros((requests, 1, 5), np.float32),
        column_scalar=None,
        column=0,
        seed=7,
        temperature=0.8,
    )
    weights = np.exp(logits.astype(float) / 0.8)
    expected = weights / weights.sum() * requests
    seen = np.bincount(run.tensors["sampled"], minlength=5)
    assert stats.chisquare(seen, expected).pvalue > 0.001


@pytest.mark.parametrize("lane", LANES)
def test_column_of_the_device_is_taken_before_the_value(bench: Any, lane: str) -> None:
    given = one_request([1, 2], column_scalar=np.array([2], np.int32), column=1)
    run = getattr(bench, lane)("gumbel_sample", **given)
    assert run.tensors["processed"][0].tolist() == [[0, 0], [0, 0], [1, 2]]


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("by_value", [True, False])
@pytest.mark.parametrize("column", [3, 2**31 - 1, -1, -(2**31)])
def test_column_out_of_range_writes_outside_processed(
    bench: Any, lane: str, by_value: bool, column: int
) -> None:
    scalar = None if by_value else np.array([column], np.int32)
    given = one_request([1, 2], column_scalar=scalar, column=column if by_value else 0)
    run = getattr(bench, lane)("gumbel_sample", **given)
    elements = [2 * column, 2 * column + 1]
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_WRITE, "processed"): elements}
    assert not run.tensors["processed"].any()
    assert run.tensors["sampled"].item() in (0, 1)


@pytest.mark.parametrize("lane", LANES)
def test_column_past_an_inner_row_lands_in_the_next_requests_first(bench: Any, lane: str) -> None:
    given = one_request(
        [1, 2],
        logits=np.array([[1, 2], [3, 4]], np.float32),
        positions=np.array([5, 6], np.int64),
        sampled=np.zeros(2, np.int32),
        processed=np.zeros((2, 3, 2), np.float32),
        column=3,
    )
    run = getattr(bench, lane)("gumbel_sample", **given)
    assert run.tensors["processed"].tolist() == [[[0, 0]] * 3, [[1, 2], [0, 0], [0, 0]]]
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_WRITE, "processed"): [12, 13]}


@pytest.mark.parametrize("lane", LANES)
def test_absent_scalar_is_not_read_and_an_empty_one_is_a_fault(bench: Any, lane: str) -> None:
    empty = np.zeros(0, np.int32)
    run = getattr(bench, lane)("gumbel_sample", **one_request([1, 2], column_scalar=empty))
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "column_scalar"): [0]}
    assert getattr(bench, lane)("gumbel_sample", **one_request([1, 2])).wrong == {}


@pytest.mark.parametrize("lane", LANES)
def test_temperature_zero_is_greedy_and_the_lowest_of_equals(bench: Any, lane: str) -> None:
    logits = [0.0] * 100
    logits[37] = logits[69] = logits[99] = 0.3  # one lane of a tile of 32, and another
    run = getattr(bench, lane)("gumbel_sample", **one_request(logits, temperature=0.0))
    assert run.tensors["sampled"].tolist() == [37]
    assert run.tensors["processed"][0, 0].tolist() == np.array(logits, np.float32).tolist()


@pytest.mark.parametrize("lane", LANES)
def test_not_a_number_and_minus_infinity_never_win(bench: Any, lane: str) -> None:
    given = one_request([np.nan, -np.inf, -50, np.nan])
    run = getattr(bench, lane)("gumbel_sample", **given)
    assert run.tensors["sampled"].tolist() == [2]
    assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
def test_request_offsets_past_32_bits_are_not_wrapped(bench: Any, lane: str) -> None:
    stride = 2**31 - 1
    given = one_request(
        [1],
        logits=Tensor("logits", np.zeros(1, np.float32), (3, 1), strides=(stride, 1)),
        positions=np.zeros(3, np.int64),
        sampled=np.zeros(3, np.int32),
        processed=Tensor(
            "processed", np.zeros(1, np.float32), (3, 1, 1), strides=(stride, stride, 1)
        ),
    )
    run = getattr(bench, lane)("gumbel_sample", **given)
    assert run.wrong == {
        (Kind.OUT_OF_BOUNDS_READ, "logits"): [stride, 2 * stride],
        (Kind.OUT_OF_BOUNDS_WRITE, "processed"): [stride, 2 * stride],
    }
