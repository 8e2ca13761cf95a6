from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from specrepro.repro.records import Kind

LANES = ("reference", "emulator")


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    counts = draw(st.lists(st.integers(0, 4), max_size=4))
    vocab = draw(st.sampled_from([1, 2, 31, 33, 70]))
    drafts, most = sum(counts), max([0, *counts])
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    target, draft = distributions(random, drafts, vocab), distributions(random, drafts, vocab)
    if draw(st.booleans()):  # equal weights: the lowest id must win
        target = np.full_like(target, 1 / vocab)
    tokens = random.integers(0, vocab, drafts, dtype=np.int32)
    best = target.argmax(1) if drafts else tokens
    tokens = np.where(random.random(drafts) < 0.6, best, tokens).astype(np.int32)
    tokens[random.random(drafts) < 0.1] = -1
    if draw(st.booleans()):
        draft[random.random(draft.shape) < 0.2] = 0
    return {
        "draft_start": np.cumsum([0, *counts], dtype=np.int32),
        "draft_tokens": tokens,
        "draft_probs": draft if draw(st.booleans()) else None,
        "target_probs": target,
        "bonus_tokens": random.integers(0, vocab, len(counts), dtype=np.int32),
        "uniform": random.random(drafts, np.float32),
        "noise": random.exponential(1, (len(counts), vocab)).astype(np.float32),
        "output": np.full((len(counts), most + draw(st.integers(1, 40))), 7, np.int32),
        "greedy": draw(st.booleans()),
    }


def distributions(random: Any, rows: int, vocab: int) -> Any:
    weights = random.exponential(1, (rows, vocab)) ** 3 + 1e-9
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def all_positions_first(batch: dict[str, Any]) -> list[list[int]]:
    """Accept or not for every draft on its own, the replacement of every draft; then cut."""
    target, draft = batch["target_probs"], batch["draft_probs"]
    rows = []
    for request, bonus in enumerate(batch["bonus_tokens"].tolist()):
        first, last = batch["draft_start"][request : request + 2].tolist()
        tokens = batch["draft_tokens"][first:last].tolist()
        accepted, instead = [], []
        for at, token in enumerate(tokens, first):
            if batch["greedy"]:
                weights = target[at].tolist()
                accepted.append(token == weights.index(max(weights)))
            else:
                accepted.append(accepts(batch, at, token))
                rest = [
                    p - (draft[at, i] if draft is not None else p * np.float32(i == token))
                    for i, p in enumerate(target[at])
                ]
                weights = [
                    max(p, 0) / n for p, n in zip(rest, batch["noise"][request], strict=True)
                ]
            instead.append(weights.index(max(weights)))
        cut = accepted.index(False) if False in accepted else len(tokens)
        row = [*tokens[:cut], *instead[cut : cut + 1]] if cut < len(tokens) else [*tokens, bonus]
        rows.append(row + [-1] * (batch["output"].shape[1] - len(row)))
    return rows


def accepts(batch: dict[str, Any], at: int, token: int) -> bool:
    if token < 0:
        return False
    p, u = batch["target_probs"][at, token], batch["uniform"][at]
    if batch["draft_probs"] is None:
        return bool(p >= u)
    q = batch["draft_probs"][at, token]
    return bool(q > 0 and p >= u * q)


@given(batch=batches())
@settings(max_examples=150, deadline=None)
def test_reference_is_acceptance_of_every_draft_then_a_cut(
    bench: Any, batch: dict[str, Any]
) -> None:
    run = bench.reference("rejection_sample", **batch)
    assert run.tensors["output"].tolist() == all_positions_first(batch)
    assert run.wrong == {}


@given(batch=batches())
@settings(max_examples=25, deadline=None)
def test_device_kernel_gives_the_tokens_of_the_reference(bench: Any, batch: dict[str, Any]) -> None:
    run = bench.emulator("rejection_sample", **batch)
    wanted = bench.reference("rejection_sample", **batch)
    assert run.tensors["output"].tolist() == wanted.tensors["output"].tolist()
    assert run.wrong == {}


def one_request(tokens: list[int], target: list[list[float]], **changes: Any) -> dict[str, Any]:
    drafts, vocab = len(tokens), len(target[0])
    return {
        "draft_start": np.array([0, drafts], np.int32),
        "draft_tokens": np.array(tokens, np.int32),
        "draft_probs": None,
        "target_probs": np.array(target, np.float32),
        "bonus_tokens": np.array([9], np.int32),
        "uniform": np.full(drafts, 0.5, np.float32),
        "noise": np.ones((1, vocab), np.float32),
        "output": np.zeros((1, drafts + 2), np.int32),
        "greedy": False,
        **changes,
    }


@pytest.mark.parametrize("lane", LANES)
def test_placeholder_is_never_accepted_nor_looked_up(bench: Any, lane: str) -> None:
    for greedy in (True, False):
        given = one_request([-1, 1], [[0.2, 0.8]] * 2, greedy=greedy)
        run = getattr(bench, lane)("rejection_sample", **given)
        assert run.tensors["output"].tolist() == [[1, -1, -1, -1]]
        assert run.wrong == {}


@pytest.mark.parametrize("lane", LANES)
def test_acceptance_includes_the_border(bench: Any, lane: str) -> None:
    given = one_request([0, 0], [[0.5, 0.5], [0.49, 0.51]])
    run = getattr(bench, lane)("rejection_sample", **given)
    assert run.tensors["output"].tolist() == [[0, 1, -1, -1]]
    draft = np.array([[0.5, 0.5]] * 2, np.float32)  # p against u * q: equal, then a little less
    given = one_request([0, 0], [[0.25, 0.75], [0.24, 0.76]], draft_probs=draft)
    run = getattr(bench, lane)("rejection_sample", **given)
    assert run.tensors["output"].tolist() == [[0, 1, -1, -1]]


@pytest.mark.parametrize("lane", LANES)
def test_draft_of_probability_zero_is_refused(bench: Any, lane: str) -> None:
    given = one_request([0], [[0.9, 0.1]], draft_probs=np.array([[0, 1]], np.float32))
    run = getattr(bench, lane)("rejection_sample", **given)
    assert run.tensors["output"].tolist() == [[0, -1, -1]]  # recovered: 0.9 - 0 is the largest


@pytest.mark.parametrize("lane", LANES)
def test_recovered_token_is_never_the_refused_draft_without_draft_probabilities(
    bench: Any, lane: str
) -> None:
    given = one_request([1], [[0.2, 0.45, 0.35]])
    run = getattr(bench, lane)("rejection_sample", **given)
    assert run.tensors["output"].tolist() == [[2, -1, -1]]


@pytest.mark.parametrize("lane", LANES)
def test_greedy_tie_goes_to_the_lowest_id_across_tiles(bench: Any, lane: str) -> None:
    target = [0.0] * 100
    target[37] = target[69] = target[99] = 0.3  # one lane of a tile of 32, and another
    given = one_request([37], [target], greedy=True)
    run = getattr(bench, lane)("rejection_sample", **given)
    assert run.tensors["output"].tolist() == [[37, 9, -1]]


@pytest.mark.parametrize("lane", LANES)
def test_not_a_number_never_wins(bench: Any, lane: str) -> None:
    given = one_request([2], [[np.nan, 0.1, 0.2]], greedy=True)
    run = getattr(bench, lane)("rejection_sample", **given)
    assert run.tensors["output"].tolist() == [[2, 9, -1]]


@pytest.mark.parametrize("lane", LANES)
def test_token_id_past_the_vocabulary_reads_past_the_last_row(bench: Any, lane: str) -> None:
    given = one_request([3], [[0.2, 0.5, 0.3]])
    run = getattr(bench, lane)("rejection_sample", **given)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_READ, "target_probs"): [3]}
    assert run.tensors["output"].tolist() == [[1, -1, -1]]


@pytest.mark.parametrize("lane", LANES)
def test_more_drafts_than_the_output_row_holds_are_written_past_it(bench: Any, lane: str) -> None:
    given = one_request([0, 0], [[0.9, 0.1]] * 2, output=np.zeros((1, 2), np.int32))
    run = getattr(bench, lane)("rejection_sample", **given)
    assert run.wrong == {(Kind.OUT_OF_BOUNDS_WRITE, "output"): [2]}


def test_first_token_follows_the_target_whatever_the_draft(bench: Any) -> None:
    """Rejection sampling is exact: 4000 requests, chi-square against the target, fixed seed."""
    random, requests = np.random.default_rng(11), 4000
    target, draft = distributions(random, 2, 6)
    run = bench.reference(
        "rejection_sample",
        draft_start=np.arange(requests + 1, dtype=np.int32),
        draft_tokens=random.choice(6, requests, p=draft / draft.sum(dtype=float)).astype(np.int32),
        draft_probs=np.tile(draft, (requests, 1)),
        target_probs=np.tile(target, (requests, 1)),
        bonus_tokens=np.zeros(requests, np.int32),
        uniform=random.random(requests, np.float32),
        noise=random.exponential(1, (requests, 6)).astype(np.float32),
        output=np.zeros((requests, 2), np.int32),
        greedy=False,
    )
    seen = np.bincount(run.tensors["output"][:, 0], minlength=6)
    expected = target.astype(float) / target.sum(dtype=float) * requests
    assert stats.chisquare(seen, expected).pvalue > 0.001
