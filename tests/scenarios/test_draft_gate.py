"""Scenario draft_gate in the reference lane, against what real vLLM was measured to do.

The tables are counts of engine steps of 0.27.0 to 0.32.0 (runner V1, k = 2, native length 128).
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrepro.repro.records import Kind
from specrepro.repro.scenarios import draft_gate
from specrepro.repro.scenarios.declare import defaults

FAULTY = {"override": "not_passed_on", "shut": "zeros"}
INHERITED = {"override": "inherited"}
NO_DRAFTS = {"override": "not_passed_on", "shut": "nothing"}
UNGATED = {"override": "not_passed_on", "gate": "none"}
MEASURED = {"target_len": 512, "draft_len": 128, "num_speculative_tokens": 2, "samples": 0}


def alone(play: Any, variant: dict[str, Any], prompt: int, **values: Any) -> Any:
    return play("draft_gate", variant, **MEASURED, long_prompt=prompt, short_prompt=0, **values)


@pytest.mark.parametrize(
    ("prompts", "steps", "accepted"),
    [
        ((100, 117), 5, 4),
        ((118, 120), 6, 3),
        ((121, 123), 8, 2),
        ((124, 126), 10, 1),
        ((127, 130, 200), 12, 0),
    ],
)
def test_steps_and_acceptance_are_those_of_the_real_engine(
    play: Any, prompts: tuple[int, ...], steps: int, accepted: int
) -> None:
    for prompt in prompts:
        outcome = alone(play, FAULTY, prompt, long_new=12).outcome
        assert len(outcome.metrics["steps"]) == steps
        by_step = [row["accepted"]["long"] for row in outcome.metrics["steps"]]
        assert [count for count in by_step if count] == [2] * accepted
        assert outcome.service.drafted == 2 * (steps - 1)
        assert outcome.service.tokens_right


def test_the_border_is_exactly_at_the_draft_length_minus_k(play: Any) -> None:
    assert alone(play, FAULTY, 126, long_new=12).outcome.service.accepted == 2
    assert alone(play, FAULTY, 127, long_new=12).outcome.service.accepted == 0


def test_a_short_request_is_dragged_down_for_the_life_of_its_long_neighbour(play: Any) -> None:
    by_itself = alone(play, FAULTY, 10, long_new=90).outcome.metrics
    assert len(by_itself["steps"]) == 31
    outcome = play(
        "draft_gate",
        FAULTY,
        **MEASURED,
        long_prompt=140,
        long_new=20,
        short_prompt=10,
        short_new=90,
    ).outcome
    grown = outcome.metrics["tokens_by_step"]["short"]
    assert len(grown) == 44
    assert grown == [1] * 21 + [3] * 23
    assert outcome.metrics["tokens_by_step"]["long"] == [1] * 20


def test_a_shut_gate_verifies_k_plus_one_slots_for_one_token(play: Any) -> None:
    shut = alone(play, FAULTY, 140, long_new=10).outcome.metrics["shut"]
    assert (shut["slots_a_step"], shut["tokens_a_step"]) == (3.0, 1.0)


@pytest.mark.parametrize("variant", [FAULTY, INHERITED, NO_DRAFTS, UNGATED])
def test_output_tokens_are_the_same_in_every_variant(play: Any, variant: dict[str, str]) -> None:
    assert play("draft_gate", variant).outcome.service.tokens_right


def test_an_inherited_length_never_shuts(play: Any) -> None:
    outcome = play("draft_gate", INHERITED).outcome
    assert {row["gate"] for row in outcome.metrics["steps"]} == {"open"}
    assert outcome.service.accepted == outcome.service.drafted > 0


def test_proposing_nothing_is_clean_and_costs_one_step_of_placeholders_when_async(
    play: Any,
) -> None:
    def slots(scheduling: str) -> list[int]:
        values = {"long_prompt": 124, "long_new": 12, "scheduling": scheduling}
        played = play("draft_gate", NO_DRAFTS, **MEASURED, short_prompt=0, **values)
        assert played.found == ()
        return [row["slots"]["long"] for row in played.outcome.metrics["steps"]]

    assert slots("sync") == [1, 3, *[1] * 8]
    assert slots("async") == [1, 3, 3, *[1] * 7]


def test_zeros_in_async_mode_only_leave_synchronous_scheduling_clean(play: Any) -> None:
    old = {**FAULTY, "zeros_when": "async_only"}
    assert play("draft_gate", old, scheduling="sync").found == ()
    assert play("draft_gate", old, scheduling="async").kinds() == {Kind.ACCEPTANCE_LOSS}
    assert play("draft_gate", FAULTY, scheduling="sync").kinds() == {Kind.ACCEPTANCE_LOSS}


def test_without_a_gate_the_rotation_table_is_read_past_its_end(play: Any) -> None:
    played = play("draft_gate", UNGATED)
    read = played.elements(Kind.OUT_OF_BOUNDS_READ, "rope", "rope_table")
    assert min(read) == 32 * 8
    assert played.outcome.service.accepted < played.outcome.service.drafted


def test_dummy_zeros_are_accepted_as_often_as_the_target_says_zero(play: Any) -> None:
    sampled = play("draft_gate", FAULTY, samples=2000).outcome.metrics["random_sampling"]
    assert sampled["expected_acceptance"] == pytest.approx([0.3, 0.09])
    assert [n / 2000 for n in sampled["accepted_by_position"]] == pytest.approx(
        [0.3, 0.09], abs=0.03
    )


@pytest.mark.parametrize("variant", [FAULTY, INHERITED, NO_DRAFTS])
def test_random_output_follows_the_target_whatever_is_proposed(
    play: Any, variant: dict[str, str]
) -> None:
    sampled = play("draft_gate", variant, samples=2000).outcome.metrics["random_sampling"]
    assert sampled["first_token_chi_square_p"] > 1e-3


def test_the_reported_lengths_work_with_small_attention(play: Any) -> None:
    reported = {
        "target_len": 1_000_000,
        "draft_len": 262_144,
        "num_speculative_tokens": 2,
        "long_new": 6,
        "short_prompt": 0,
        "window": 32,
        "samples": 0,
    }
    assert play("draft_gate", FAULTY, long_prompt=262_142, **reported).outcome.service.accepted == 2
    beyond = play("draft_gate", FAULTY, long_prompt=262_143, **reported)
    assert beyond.outcome.service.accepted == 0
    assert beyond.outcome.service.tokens_right
    ungated = play("draft_gate", UNGATED, long_prompt=262_142, **reported)
    read = ungated.elements(Kind.OUT_OF_BOUNDS_READ, "rope", "rope_table")
    assert min(read) == 262_144 * 8


@given(
    k=st.integers(1, 4),
    long_prompt=st.integers(4, 40),
    long_new=st.integers(1, 14),
    short=st.one_of(st.just(0), st.integers(2, 20)),
    short_new=st.integers(1, 14),
    scheduling=st.sampled_from(["async", "sync"]),
    variant=st.sampled_from([FAULTY, INHERITED, NO_DRAFTS, UNGATED]),
    seed=st.integers(0, 1000),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_closed_form_says_what_a_run_finds(
    play: Any, k: int, short: int, variant: dict[str, str], **drawn: Any
) -> None:
    played = play(
        "draft_gate", variant, num_speculative_tokens=k, short_prompt=short, samples=0, **drawn
    )
    wanted = {(p.kind, p.op, p.tensor, p.request) for p in played.predicted}
    if variant is UNGATED:
        read = played.elements(Kind.OUT_OF_BOUNDS_READ, "rope", "rope_table")
        begins = [p.elements[0] for p in played.predicted if p.elements]
        assert [min(read)] == begins if read else begins == []
    else:
        assert {(f.kind, f.op, f.tensor, f.request) for f in played.found} == wanted
    assert played.outcome.service.tokens_right


@pytest.mark.parametrize(
    ("draft", "effective", "native", "due"),
    [
        (262_144, 1_000_000, 262_144, True),  # the report: native length says nothing
        (262_144, 262_144, 262_144, False),
        (131_072, 65_536, 262_144, False),  # the native length would over-report
        (262_144, 1_000_000, 131_072, True),  # the native length would under-report
        (2_000_000, 1_000_000, 262_144, False),
    ],
)
def test_the_start_up_warning_compares_with_what_the_target_really_serves(
    draft: int, effective: int, native: int, due: bool
) -> None:
    assert draft_gate.warns(draft, effective, native) is due


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"draft_len": 64}, "draft_len"),
        ({"block_size": 24}, "block_size"),
        ({"long_new": 40}, "long_new"),
        ({"target_len": 16384, "long_prompt": 8000}, "window"),
        ({"draft_len": 8, "num_speculative_tokens": 8}, "num_speculative_tokens"),
    ],
)
def test_contradictions_name_their_key(values: dict[str, Any], key: str) -> None:
    point = {**defaults(draft_gate.PARAMETERS), **values}
    found = draft_gate.contradiction(point, defaults(draft_gate.SETTINGS))
    assert found is not None
    assert found[0] == key
