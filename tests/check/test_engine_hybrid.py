"""The GDN hybrid whose text is known, computed here in numpy: what its recurrent state decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specrepro.repro.check.engine.driver import canary
from specrepro.repro.check.engine.tokens import CYCLE, continuation, prompt

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]
HEAD, TAPS = 64, 4
PREFIX = "layer."


def norm(x: Floats) -> Floats:
    return x / np.sqrt(np.mean(x * x) + 1e-6)


def silu(x: Floats) -> Floats:
    return x / (1 + np.exp(-x))


class Hybrid:
    """One GDN layer on the embedding, token by token: the gated delta rule as it is published."""

    def __init__(self) -> None:
        self.embedding, self.head = canary.vocabulary(list(CYCLE))
        self.weights = {
            f"{PREFIX}{name}.weight": np.zeros(shape)
            for name, shape in (
                ("in_proj_qkvz", (12 * HEAD, canary.HIDDEN)),
                ("in_proj_ba", (8, canary.HIDDEN)),
                ("out_proj", (canary.HIDDEN, 4 * HEAD)),
                ("conv1d", (8 * HEAD, 1, TAPS)),
            )
        }
        canary.memory(self.weights, PREFIX)
        self.conv = np.zeros((3 * HEAD, TAPS - 1))
        self.state = np.zeros((HEAD, HEAD))

    def weight(self, name: str) -> Floats:
        return self.weights[f"{PREFIX}{name}.weight"]

    def kept(self) -> tuple[Floats, Floats]:
        return self.conv.copy(), self.state.copy()

    def take(self, kept: tuple[Floats, Floats]) -> None:
        self.conv, self.state = kept[0].copy(), kept[1].copy()

    def says(self, token: int) -> int:
        """The token after `token`; the state goes on by one."""
        hidden = self.embedding[token].astype(np.float64)
        rows = self.weight("in_proj_qkvz") @ norm(hidden)
        # of the first key head: query, key, first value; channels of all heads in the convolution
        now = np.concatenate([rows[: 2 * HEAD], rows[2 * HEAD : 3 * HEAD]])
        taps = self.weight("conv1d")[:, 0]
        taps = np.concatenate([taps[:HEAD], taps[2 * HEAD : 3 * HEAD], taps[4 * HEAD : 5 * HEAD]])
        window = np.concatenate([self.conv, now[:, None]], axis=1)
        self.conv = window[:, 1:]
        query, key, value = np.split(silu((window * taps).sum(axis=1)), 3)
        query, key = (x / np.sqrt((x * x).sum() + 1e-6) for x in (query, key))
        beta = 1 / (1 + np.exp(-(self.weight("in_proj_ba") @ norm(hidden))[0]))
        self.state = self.state + beta * np.outer(key, value - self.state.T @ key)
        gate = silu(rows[4 * HEAD : 5 * HEAD])
        out = norm(self.state.T @ query) * gate
        hidden = hidden + self.weight("out_proj")[:, :HEAD] @ out
        return int(np.argmax(self.head @ norm(hidden)))


def read(model: Hybrid, tokens: tuple[int, ...]) -> int:
    return [model.says(token) for token in tokens][-1]


def test_with_its_own_state_it_says_the_text_through_the_whole_cycle_and_on() -> None:
    model = Hybrid()
    text = prompt(300)
    assert [model.says(token) for token in text] == list(text[1:]) + list(continuation(text, 1))


@pytest.mark.parametrize("behind", [1, 2, 3, 5])
def test_a_state_that_lacks_the_last_tokens_says_another_one(behind: int) -> None:
    model = Hybrid()
    text = prompt(60)
    read(model, text[: 59 - behind])
    stale = model.kept()
    read(model, text[59 - behind : 59])
    model.take(stale)
    # the token before that it reads is the one of then, and that one's text goes on
    assert model.says(text[59]) == text[60 - behind]


def test_a_convolution_alone_that_lags_behind_shows_as_well() -> None:
    model = Hybrid()
    text = prompt(60)
    read(model, text[:57])
    lagging, _ = model.kept()
    read(model, text[57:59])
    _, state = model.kept()
    model.take((lagging, state))
    assert model.says(text[59]) != continuation(text, 1)[0]


def test_a_prompt_of_one_token_is_right_on_zeros_and_wrong_on_what_another_request_left() -> None:
    model = Hybrid()
    first = CYCLE[100]
    assert model.says(first) == CYCLE[101]
    read(model, prompt(40))
    assert model.says(first) != CYCLE[101]


def test_codes_are_balanced_and_unlike_each_other() -> None:
    codes = np.array([canary.signs(token) for token in CYCLE])
    assert (codes.sum(axis=1) == 0).all()
    alike = codes @ codes.T - np.eye(len(CYCLE)) * canary.CODE
    assert alike.max() < canary.CODE * 0.6
