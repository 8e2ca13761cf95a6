"""What scenario gdn_pipeline tells of its steps and its copies of states, for pictures of them."""

from typing import Any

import pytest

from specrepro.repro.scenarios.gdn_moves import MOST
from specrepro.repro.scenarios.gdn_turns import MOST_TURNS

OWNERS = {"state": "block", "conv_history": "block"}
MTP = {"num_speculative_tokens": 2, "new_tokens": 8}


def metrics(play: Any, fault: str = "none", **values: Any) -> Any:
    return play("gdn_pipeline", {"fault": fault}, OWNERS, **values).outcome.metrics


def test_hosts_issue_at_once_and_later_stages_begin_when_hidden_states_arrive(play: Any) -> None:
    told = metrics(play, prompt=4, new_tokens=1)["turns"]
    assert [(t["stage"], t["step"], t["issued"], t["started"]) for t in told] == [
        (0, 0, 0, 0),
        (1, 0, 0, 1),
        (2, 0, 0, 3),
    ]


def test_with_blocking_launches_a_step_begins_everywhere_when_it_is_issued(play: Any) -> None:
    for turn in metrics(play, blocking=True)["turns"]:
        assert turn["started"] == turn["issued"]


def test_the_launches_of_turns_are_those_of_their_stage(play: Any) -> None:
    told = metrics(play, requests=2)
    ranges = [[*turn["launches"], turn["stage"]] for turn in told["turns"]]
    assert ranges == told["launch_stages"]


def test_a_column_of_a_later_chunk_leads_behind_the_row(play: Any) -> None:
    # the copy of step 0 on stage 1 finds the columns of step 1, whose table is wider by one
    told = metrics(play, "staging_reused")
    first, second = told["strayed"][:2]
    assert (first["stage"], first["step"]) == (1, 0)
    assert first["meant"]["from"] == [0, 1]
    assert [first["used"][end][0] for end in ("from", "to")] == [1, 2]
    assert len(first["row"]) == 2
    assert first["used"]["to"][1] == second["row"][0]  # the next row's first
    assert second["used"]["to"] == [2, None]  # behind the last row


def test_a_table_that_a_region_kept_is_the_one_that_strays(play: Any) -> None:
    told = metrics(play, "frozen_value")["strayed"]
    assert {one["step"] for one in told} >= {1}
    for one in told:
        assert [one["used"][end][0] for end in ("from", "to")] == [
            one["meant"][end][0] for end in ("from", "to")
        ]
        assert one["stage"] > 0  # the first stage receives nothing


def test_a_block_whose_offset_wrapped_is_told_beside_the_right_one(play: Any) -> None:
    for one in metrics(play, "offset_32bit")["strayed"]:
        assert one["used"]["to"][1] < 0 < one["meant"]["to"][1]


def test_a_state_that_is_not_cleared_is_a_copy_that_was_left_out(play: Any) -> None:
    first = metrics(play, "unmasked_state")["strayed"][0]
    assert first["meant"]["from"] == [0, 1]  # the zero block
    assert first["used"]["from"] == first["used"]["to"] == first["meant"]["to"]


def test_a_late_copy_by_batch_row_takes_the_blocks_of_another_request(play: Any) -> None:
    told = metrics(play, "batch_row_late", requests=2, gap=1, **MTP)["strayed"]
    assert told
    assert any(one["used"]["to"][1] != one["meant"]["to"][1] for one in told)


@pytest.mark.parametrize("fault", ["staging_reused", "frozen_value"])
def test_what_is_told_of_a_long_prompt_is_bounded(play: Any, fault: str) -> None:
    told = metrics(play, fault, prompt=400)
    assert len(told["turns"]) == MOST_TURNS
    assert len(told["strayed"]) == MOST
