"""What the draft model is fed near max_model_len: the oracle, on records written by hand."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.case import load_cases
from specrepro.repro.check.engine.answer import Answer, Played, Sign
from specrepro.repro.check.engine.declare import EngineSpec
from specrepro.repro.check.engine.observe import parse
from specrepro.repro.check.engine.oracles import mtp_tail
from specrepro.repro.check.engine.process import Ending
from specrepro.repro.check.engine.tokens import continuation, prompt

WELL = Ending("", False, 0, 1.0)
ENGINE = {
    "o": "engine",
    "runner": "vllm.v1.worker.cpu_model_runner",
    "num_speculative_tokens": 4,
    "block_size": 32,
}
# blocks of vLLM 0.28.0's run: the ending request, and its neighbour behind it in the table
BLOCKS = {"ending": [1, 2, 3, 4], "neighbour": [5, 6]}
OTHER = mtp_tail.OTHER_TEXT


@cache
def spec() -> EngineSpec:
    [case] = load_cases(["mtp-tail-overflow"])
    assert case.case.check is not None
    assert case.case.check.engine is not None
    return case.case.check.engine.record()


def served(
    name: str, prompts: dict[str, int], new: dict[str, int], first: dict[str, int]
) -> dict[str, Any]:
    return {
        "o": "batch",
        "batch": name,
        "prompts": prompts,
        "steps": [new],
        "tokens": {r: continuation(prompt(prompts[r], first[r]), n) for r, n in new.items()},
        "stuck": False,
        "metrics": {},
    }


def fed(request: str, positions: list[int], slots: list[int]) -> dict[str, Any]:
    return {
        "o": "draft",
        "batch": "pair",
        "step": 9,
        "rows": [[request, positions, slots]],
        "blocks": BLOCKS,
    }


def judged(*drafts: Any, end: int = 128) -> Answer:
    first = {"ending": prompt(1)[0], "neighbour": OTHER}
    lines = [
        ENGINE,
        *drafts,
        served("single", {"ending": 108}, {"ending": end - 108}, first),
        {"o": "done"},
    ]
    observed = parse("".join(json.dumps(line) + "\n" for line in lines).encode())
    settings = {"runner": "v1", "k": 4}
    return mtp_tail.judge(spec(), settings, {"k4": Played(observed, WELL, settings)}, True)


def test_positions_below_the_end_in_their_own_slots_are_no_sign() -> None:
    # position 125: fourth block, which is 4, row 29
    answer = judged(fed("ending", [124, 125], [4 * 32 + 28, 4 * 32 + 29]))
    assert answer.sign is Sign.NOT_SEEN
    assert [row.value for row in answer.rows] == [125]


def test_a_position_past_the_end_that_lands_with_the_neighbour_is_the_sign() -> None:
    # measured with the gate and the mask taken away: position 128 reads row 1, column 0
    answer = judged(fed("ending", [127], [159]), fed("ending", [128], [160]))
    assert answer.sign is Sign.SEEN
    assert answer.reason == (
        "k4: position 128 of request ending goes to slot 160 in block 5, of request neighbour; "
        "it has no slot; 1 such rows"
    )


def test_a_masked_row_is_written_nowhere() -> None:
    assert judged(fed("ending", [127, 0], [159, -1])).sign is Sign.NOT_SEEN


def test_a_position_in_a_block_of_another_place_is_the_sign() -> None:
    answer = judged(fed("ending", [127], [1 * 32 + 31]))
    assert answer.sign is Sign.SEEN
    assert "its own is 159" in answer.reason


def test_a_request_that_ends_before_its_length_is_another_failure() -> None:
    answer = judged(fed("ending", [120], [152]), end=126)
    assert answer.sign is Sign.OTHER
    assert "ends at 126, not at 128" in answer.reason


def test_without_a_pass_of_the_draft_model_nothing_is_known() -> None:
    assert judged().sign is Sign.UNKNOWN


ODD = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@pytest.mark.parametrize("key", ["rows", "blocks", "step", "batch"])
@given(value=ODD)
def test_a_record_of_another_shape_is_none(key: str, value: Any) -> None:
    answer = judged(fed("ending", [1], [33]) | {key: value})
    assert answer.sign in (Sign.UNKNOWN, Sign.SEEN if key == "blocks" else Sign.NOT_SEEN)


def test_a_row_of_no_request_has_no_slot_of_its_own() -> None:
    answer = judged({**fed("ending", [1], [33]), "rows": [[None, [7], [999]]]})
    assert answer.sign is Sign.SEEN
