"""Scenario mtp_tail in the reference lane: intervals, faces, fixes; and its closed form."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrepro.repro.records import Kind
from specrepro.repro.scenarios import mtp_tail
from specrepro.repro.scenarios.declare import defaults

FAULTY = {"admit": "one_token"}
FIXED = {"admit": "all_drafts"}
CLAMPED = {"admit": "one_token", "drafts": "clamp_to_remaining"}
WRITE = Kind.OUT_OF_BOUNDS_WRITE
SMALL = {"max_model_len": 16, "block_size": 4}


def test_the_smallest_numbers_of_the_report_write_slot_16_of_16(play: Any) -> None:
    played = play("mtp_tail", FAULTY, **SMALL, num_speculative_tokens=3, seq_len=14)
    assert played.elements(WRITE, "kv_write", "key_cache") == set(range(16 * 16, 17 * 16))
    assert "draft 3 of 3, position 16" in played.outcome.who


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("first_draft", ["own_step", "target_pass"])
def test_the_faulty_interval_is_the_stated_one(play: Any, k: int, first_draft: str) -> None:
    limit = 16
    lowest = limit - k if first_draft == "own_step" else limit - k + 1
    faulty = {
        seq_len
        for seq_len in range(max(4, k + 3), limit)
        if play(
            "mtp_tail",
            FAULTY,
            **SMALL,
            num_speculative_tokens=k,
            seq_len=seq_len,
            first_draft=first_draft,
        ).elements(WRITE, "kv_write", "key_cache")
    }
    assert faulty == {s for s in range(max(4, k + 3), limit) if lowest < s <= limit - 1}


@pytest.mark.parametrize("variant", [FIXED, CLAMPED, {**FAULTY, "at_limit": "pad"}])
@pytest.mark.parametrize("placement", ["unmapped", "neighbour", "garbage_size"])
def test_a_fix_is_clean_and_serves_at_every_length(
    play: Any, variant: dict[str, str], placement: str
) -> None:
    for seq_len in range(8, 32):
        played = play(
            "mtp_tail",
            variant,
            max_model_len=32,
            block_size=8,
            seq_len=seq_len,
            placement=placement,
            neighbour_len=5,
            neighbour_new=12,
        )
        assert played.found == ()
        assert played.outcome.service.ok


def test_a_fix_that_never_speculates_would_not_serve(play: Any) -> None:
    served = play("mtp_tail", FIXED, **SMALL, seq_len=14).outcome.service
    assert served.drafted > 0
    assert served.drafted == served.accepted


def test_the_neighbour_loses_acceptance_and_keeps_its_tokens(play: Any) -> None:
    played = play("mtp_tail", FAULTY, placement="neighbour", neighbour_new=20)
    [loss] = [f for f in played.found if f.kind is Kind.ACCEPTANCE_LOSS]
    long, other = played.outcome.metrics["requests"]
    assert loss.request == 1
    assert long["accepted"] == long["drafted"]
    assert other["tokens_by_step"][:3] == [1, 4, 4]
    assert set(other["tokens_by_step"][3:]) == {1}
    assert played.outcome.service.tokens_right


def test_the_neighbours_row_and_block_are_hit_by_the_other_request(play: Any) -> None:
    played = play("mtp_tail", FAULTY, placement="neighbour")
    # four blocks of 16 belong to request 0, block 5 is the first of request 1
    assert played.elements(Kind.FOREIGN_READ, "draft_step", "block_table") == {4}
    assert played.elements(Kind.FOREIGN_WRITE, "kv_write", "key_cache") == set(
        range(5 * 16 * 16, 5 * 16 * 16 + 16)
    )


def test_without_declared_owners_only_the_acceptance_shows(play: Any) -> None:
    played = play("mtp_tail", FAULTY, owners={}, placement="neighbour")
    assert played.kinds() == {Kind.ACCEPTANCE_LOSS}


@pytest.mark.parametrize("placement", ["neighbour", "garbage_size"])
def test_rows_rounded_up_to_128_tokens_keep_the_overrun_to_themselves(
    play: Any, placement: str
) -> None:
    assert play("mtp_tail", FAULTY, placement=placement, table_align=128).found == ()


def test_rows_rounded_up_help_no_length_that_is_a_multiple(play: Any) -> None:
    played = play(
        "mtp_tail",
        FAULTY,
        placement="neighbour",
        table_align=128,
        max_model_len=128,
        seq_len=126,
    )
    assert played.elements(Kind.FOREIGN_READ, "draft_step", "block_table") == {8}


def test_garbage_behind_the_table_sizes_the_next_allocation(play: Any) -> None:
    played = play("mtp_tail", FAULTY, placement="garbage_size")
    [asked] = [f for f in played.found if f.kind is Kind.OVERSIZED_ALLOCATION]
    # the highest slot is the first of that block; a slot has 2 x 2 x 8 fp16
    assert asked.got == (mtp_tail.GARBAGE_BLOCK * 16 + 1) * 64
    assert asked.expected == 80 << 30
    assert not played.outcome.service.finished


def test_routed_tokens_overrun_with_the_drafts_and_are_fixed_with_them(play: Any) -> None:
    faulty = play("mtp_tail", {**FAULTY, "routed": True})
    for tensor in ("routed_experts", "routed_weights"):
        assert faulty.elements(WRITE, "kv_write", tensor) == set(range(1024, 1040))
    assert play("mtp_tail", {**FIXED, "routed": True}).found == ()


@given(
    k=st.integers(1, 6),
    before_end=st.integers(1, 12),
    variant=st.sampled_from([FAULTY, FIXED, CLAMPED, {**FAULTY, "at_limit": "clamp"}]),
    placement=st.sampled_from(["unmapped", "neighbour", "garbage_size"]),
    first_draft=st.sampled_from(["own_step", "target_pass"]),
    block_size=st.sampled_from([4, 8, 16]),
    table_align=st.sampled_from([1, 128]),
    seed=st.integers(0, 1000),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_closed_form_says_what_a_run_finds(play: Any, **drawn: Any) -> None:
    k = drawn.pop("k")
    seq_len = 48 - drawn.pop("before_end")
    variant = drawn.pop("variant")
    values = {
        **drawn,
        "num_speculative_tokens": k,
        "seq_len": seq_len,
        "max_model_len": 48,
        "neighbour_len": 9,
        "neighbour_new": 2 * k + 6,
    }
    played = play("mtp_tail", variant, **values)
    assert bool(played.predicted) == bool(played.found)
    for key in {(p.kind, p.op, p.tensor) for p in played.predicted if p.elements}:
        wanted = {
            element
            for p in played.predicted
            if (p.kind, p.op, p.tensor) == key and p.elements
            for element in range(p.elements[0], p.elements[1] + 1)
        }
        assert played.elements(*key) == wanted
    assert {p.kind for p in played.predicted} <= played.kinds()


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"block_size": 24}, "block_size"),
        ({"seq_len": 65}, "seq_len"),
        ({"seq_len": 5}, "seq_len"),
        ({"placement": "neighbour", "neighbour_len": 60}, "neighbour_new"),
        ({"placement": "neighbour", "neighbour_new": 4}, "neighbour_new"),
    ],
)
def test_contradictions_name_their_key(values: dict[str, Any], key: str) -> None:
    point = {**defaults(mtp_tail.PARAMETERS), **values}
    found = mtp_tail.contradiction(point, defaults(mtp_tail.SETTINGS))
    assert found is not None
    assert found[0] == key
