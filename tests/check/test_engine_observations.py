"""Observations of a driver, read as text of a stranger; and the gate's oracle on written ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.case import load_cases
from specrepro.repro.check.engine.answer import Answer, Played, Sign
from specrepro.repro.check.engine.observe import Observed, parse
from specrepro.repro.check.engine.oracles import draft_gate
from specrepro.repro.check.engine.process import Ending
from specrepro.repro.check.engine.tokens import continuation, prompt

WELL = Ending("", False, 0, 1.0)
ENGINE = {
    "o": "engine",
    "runner": "vllm.v1.worker.cpu_model_runner",
    "target_max_model_len": 512,
    "draft_max_model_len": 128,
    "num_speculative_tokens": 2,
    "async_scheduling": False,
    "prefix_caching": False,
}


def batch(
    name: str, made: dict[str, list[int]], prompts: dict[str, int], accepted: int, drafts: int
) -> dict[str, Any]:
    """A line for a batch; `made`: tokens that each request gets, step by step."""
    steps = max(map(len, made.values()))
    return {
        "o": "batch",
        "batch": name,
        "prompts": prompts,
        "steps": [{r: m[i] for r, m in made.items() if i < len(m)} for i in range(steps)],
        "tokens": {r: continuation(prompt(prompts[r]), sum(m)) for r, m in made.items()},
        "finish": dict.fromkeys(made, "length"),
        "stuck": False,
        "metrics": {"drafts": drafts, "draft_tokens": 2 * drafts, "accepted_tokens": accepted},
    }


def length(n: int, accepted: int, drafts: int) -> dict[str, Any]:
    # 12 tokens: all the same to the oracle in which steps they come
    return batch(f"length-{n}", {"r": [1] * 12}, {"r": n}, accepted, drafts)


# vLLM 0.28.0, runner V1, draft length 128, k = 2: accepted drafts and drafts by prompt length
MEASURED = [(20, 8, 4), (117, 8, 4), (119, 6, 5), (122, 4, 7), (125, 2, 9), (126, 2, 9)]
LOST = [(127, 0, 11), (128, 0, 11), (300, 0, 11)]
ALONE = [1] + [3] * 29 + [2]
BESIDE = [1] * 21 + [3] * 23


def lines(
    lengths: list[tuple[int, int, int]], beside: list[int], **engine: Any
) -> list[dict[str, Any]]:
    return [
        ENGINE | engine,
        *(length(*one) for one in lengths),
        batch("alone", {"short": ALONE}, {"short": 10}, 60, 30),
        batch("beside", {"short": beside, "long": [1] * 20}, {"short": 10, "long": 140}, 46, 63),
        {"o": "done", "lines": 1},
    ]


def written(said: list[dict[str, Any]]) -> Observed:
    return parse("".join(json.dumps(line) + "\n" for line in said).encode())


def judged(said: list[dict[str, Any]], **settings: Any) -> Answer:
    [case] = load_cases(["draft-length-gate"])
    assert case.case.check is not None
    assert case.case.check.engine is not None
    spec = case.case.check.engine.record()
    played = Played(written(said), WELL, {"k": 2, **settings})
    return draft_gate.judge(spec, settings, {draft_gate.MAIN: played}, True)


def test_the_measured_table_is_the_signature() -> None:
    answer = judged(lines(MEASURED + LOST, BESIDE))
    assert answer.sign is Sign.SEEN
    values = {row.probe: row.value for row in answer.rows}
    assert (values["first_lost_prompt_length"], values["neighbour_slow_steps"]) == (127, 21)


def test_a_border_is_told_only_between_two_lengths_that_were_both_tried() -> None:
    assert judged(lines([*MEASURED[:-1], *LOST], BESIDE)).sign is Sign.UNKNOWN
    assert judged(lines([*MEASURED, (127, 0, 11), (200, 8, 4)], BESIDE)).sign is Sign.UNKNOWN


def test_a_loss_that_is_not_at_the_drafts_length_is_another_one() -> None:
    answer = judged(lines(MEASURED + LOST, BESIDE, draft_max_model_len=256))
    assert answer.sign is Sign.OTHER
    assert "another loss" in answer.reason


def test_a_loss_from_the_beginning_is_another_one() -> None:
    none = [(n, 0, drafts) for n, _, drafts in MEASURED + LOST]
    assert judged(lines(none, BESIDE)).sign is Sign.OTHER


def test_a_neighbour_that_is_not_slowed_is_half_a_signature() -> None:
    assert judged(lines(MEASURED + LOST, ALONE)).sign is Sign.OTHER


def test_acceptance_everywhere_is_no_sign() -> None:
    sound = [(n, 8, 4) for n, _, _ in MEASURED + LOST]
    assert judged(lines(sound, ALONE)).sign is Sign.NOT_SEEN


def test_where_nothing_is_drafted_behind_the_border_nothing_is_wasted() -> None:
    quiet = [*MEASURED, (127, 0, 0), (300, 0, 0)]
    assert judged(lines(quiet, BESIDE)).sign is Sign.NOT_SEEN


def test_an_engine_that_did_not_come_up_as_asked_decides_nothing() -> None:
    answer = judged(lines(MEASURED + LOST, BESIDE), runner="v2")
    assert answer.sign is Sign.UNKNOWN
    assert answer.reason == "runner v2 was asked for, and the engine came up with v1"


@pytest.mark.parametrize("place", range(len(MEASURED + LOST) + 3))
def test_no_line_that_is_missing_leads_to_a_sign_of_its_own(place: int) -> None:
    said = lines(MEASURED + LOST, BESIDE)
    del said[place]
    assert judged(said).sign in (Sign.UNKNOWN, Sign.SEEN)


def test_observations_without_their_last_line_decide_nothing() -> None:
    answer = judged(lines(MEASURED + LOST, BESIDE)[:-1])
    assert (answer.sign, "cut" in answer.reason) == (Sign.UNKNOWN, True)


@given(st.binary(max_size=400))
def test_bytes_of_any_kind_are_read_or_complained_about(content: bytes) -> None:
    assert parse(content).complaint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = ["prompts", "steps", "tokens", "metrics", "stuck", "batch", "finish"]


@given(st.sampled_from(KEYS), JSON)
def test_a_batch_with_anything_in_one_place_is_read_or_complained_about(
    key: str, value: Any
) -> None:
    good = length(20, 8, 4)
    observed = written([good | {key: value}, {"o": "done"}])
    assert observed.complaint or len(observed.batches) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (length(20, 8, 4) | {"tokens": {"other": [1]}}, "a request of it was never made"),
        (length(20, 8, 4) | {"metrics": {"drafts": 0.5}}, "a count in it is not whole"),
        (length(20, 8, 4) | {"batch": "a\x1b[2J"}, "a name in it is none"),
    ],
)
def test_what_cannot_be_is_named_with_its_line(line: dict[str, Any], words: str) -> None:
    complaint = written([ENGINE, line, {"o": "done"}]).complaint
    assert complaint == f"line 2 of the observations is none of the driver's: {words}"
