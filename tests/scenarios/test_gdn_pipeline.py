"""Scenario gdn_pipeline: right is the single stage bit for bit; what each hypothesis does.

The oracle of tokens is a model in integers that calls no op.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from specrepro.repro.agreement import difference, places
from specrepro.repro.hypotheses import ends_device
from specrepro.repro.lanes.catalog import BOUNDS, OWNERSHIP
from specrepro.repro.lanes.emulator import EmulatorDevice
from specrepro.repro.ops import Ops
from specrepro.repro.records import Kind
from specrepro.repro.scenarios import gdn_pipeline, gdn_tokens
from specrepro.repro.scenarios.declare import defaults
from specrepro.repro.scenarios.gdn_partition import bindings, misplaced, sizes

OWNERS = {"state": "block", "conv_history": "block"}
CORRECT = {"fault": "none"}
MTP = {"num_speculative_tokens": 2, "new_tokens": 8}
# what each hypothesis needs to act
ACTING: dict[str, dict[str, Any]] = {
    "global_layer_index": {},
    "stale_padding": {"requests": 2},
    "batch_row_late": {**MTP, "requests": 2, "gap": 1},
    "wrong_block_unit": {"cached": 8},
    "accepted_lost": {"num_speculative_tokens": 1, "new_tokens": 4, "prefix_caching": False},
    "staging_reused": {},
    "receive_reused": {},
    "frozen_value": {},
    "unmasked_state": {},
    "offset_32bit": {},
    "accepted_unbounded": {**MTP, "prompt": 12},
}


def run(play: Any, fault: str = "none", **values: Any) -> Any:
    return play("gdn_pipeline", {"fault": fault}, OWNERS, **values)


def stage_of(played: Any, launch: int) -> int:
    ranges = played.outcome.metrics["launch_stages"]
    return next(stage for first, last, stage in ranges if first <= launch <= last)


def out_of_bounds(played: Any) -> list[Any]:
    return [f for f in played.found if f.kind in BOUNDS]


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("partition", ["cut", "keep", "default", "1,10,1", "2,3,2,5"])
def test_every_partition_leaves_what_one_stage_leaves_bit_for_bit(
    play: Any, partition: str, caching: bool
) -> None:
    one = run(play, partition="single", prefix_caching=caching).outcome.metrics
    cut = run(play, partition=partition, prefix_caching=caching).outcome.metrics
    assert cut["hidden_sha256"] == one["hidden_sha256"]
    assert cut["served"] == one["served"]


@given(
    layers=st.sampled_from([4, 8, 12]),
    partition=st.sampled_from(["cut", "keep", "default", "single"]),
    prompt=st.integers(1, 14),
    blocks=st.sampled_from([(2, 1), (4, 2), (4, 4)]),
    chunks=st.integers(1, 2),
    execution=st.sampled_from(["graphs", "compiled", "eager"]),
    requests=st.integers(1, 3),
    drafts=st.sampled_from([0, 0, 1, 2, 3]),
    cached=st.integers(0, 2),
    **{name: st.booleans() for name in ("blocking", "prefix_caching", "recycled")},
    **{name: st.integers(0, 3) for name in ("gap", "seed", "in_flight")},
    new_tokens=st.integers(1, 7),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_right_pipeline_serves_and_touches_nothing_wrong(
    play: Any,
    blocks: tuple[int, int],
    chunks: int,
    drafts: int,
    cached: int,
    **drawn: Any,
) -> None:
    mamba, kv = blocks
    values = {
        **drawn,
        "mamba_block": mamba,
        "block_size": kv,
        "chunk": mamba * chunks,
        "num_speculative_tokens": drafts,
        "cached": cached * mamba,
    }
    point = {**defaults(gdn_pipeline.PARAMETERS), **values}
    assume(gdn_pipeline.contradiction(point, CORRECT) is None)
    played = run(play, **values)
    assert played.found == played.predicted == ()
    assert played.outcome.service.finished
    assert played.outcome.service.tokens_right
    assert played.outcome.service.accepted == played.outcome.service.drafted
    assert played.outcome.metrics["strayed"] == []


def test_a_cold_prompt_has_a_chunk_in_flight_a_stage_and_a_blocked_one_a_single_one(
    play: Any,
) -> None:
    assert run(play).outcome.metrics["most_in_flight"] == 3
    assert run(play, blocking=True).outcome.metrics["most_in_flight"] == 1
    assert run(play, in_flight=1).outcome.metrics["most_in_flight"] == 1
    assert run(play, prompt=2).outcome.metrics["most_in_flight"] == 1


@pytest.mark.parametrize(
    ("name", "reported"), [("cut", (23, 23, 18)), ("keep", (24, 24, 16)), ("default", (21, 22, 21))]
)
def test_named_partitions_of_64_layers_are_the_reported_ones(
    name: str, reported: tuple[int, ...]
) -> None:
    assert sizes(name, 64) == reported


@pytest.mark.parametrize("layers", [12, 16, 20, 32, 48, 64])
def test_scaled_partitions_start_their_stages_at_the_same_phases(layers: int) -> None:
    def phases(name: str) -> list[int]:
        one, two, _ = sizes(name, layers)
        return [one % 4, (one + two) % 4]

    assert phases("cut") == [3, 2]
    assert phases("keep") == [0, 0]


def test_every_layer_has_a_place_of_its_own_in_the_three_partitions(play: Any) -> None:
    for counts in ((23, 23, 18), (24, 24, 16), (21, 22, 21)):
        placed = bindings(counts)
        assert [at.layer for at in placed] == list(range(64))
        assert misplaced(placed) == []
        assert misplaced([*placed[:-1], replace(placed[-1], group=placed[-2].group)]) != []
        assert misplaced([*placed, placed[5]]) != []


def test_the_report_sizes_run_and_h6_faults_on_stage_1_there(play: Any) -> None:
    values = {"layers": 64, "partition": "23,23,18", "prompt": 24, "chunk": 8, "mamba_block": 8}
    assert run(play, **values).found == ()
    faulty = run(play, "staging_reused", **values)
    launch = min(f.launch for f in faulty.found if ends_device(f))
    assert stage_of(faulty, launch) == 1


def test_the_protocol_is_kept_by_a_right_pipeline(play: Any) -> None:
    said = run(play, short_prompts=3).outcome.metrics["protocol"]
    assert said["short_right"] == [3, 3]
    assert said["long_right"] is True
    assert said["recalls"] is True
    assert said["kv_tokens"] >= said["needs_kv_tokens"]
    assert said["misplaced"] == {"cut": [], "keep": [], "default": []}


def test_the_answer_depends_on_every_token_of_the_prompt() -> None:
    prompt = gdn_tokens.prompt(10, 1)
    right = gdn_tokens.continuation(prompt, 16, 12)[10:]
    for at in range(10):
        other = [*prompt[:at], (prompt[at] + 1) % gdn_tokens.VOCAB, *prompt[at + 1 :]]
        assert gdn_tokens.continuation(other, 16, 12)[10:] != right


@pytest.mark.parametrize("fault", ACTING)
def test_a_hypothesis_acts_where_it_has_what_it_needs(play: Any, fault: str) -> None:
    played = run(play, fault, **ACTING[fault])
    assert played.found != ()
    assert run(play, **ACTING[fault]).found == ()
    assert played.outcome.who == gdn_pipeline.FAULTS[fault]


@pytest.mark.parametrize(
    ("fault", "without"),
    [
        ("global_layer_index", {"partition": "keep"}),
        ("stale_padding", {"execution": "compiled"}),
        ("stale_padding", {"requests": 1}),
        ("batch_row_late", {"requests": 1}),
        ("batch_row_late", {"num_speculative_tokens": 0}),
        ("batch_row_late", {"prefix_caching": False}),
        ("batch_row_late", {"runner": "v1"}),
        ("batch_row_late", {"partition": "single"}),
        ("wrong_block_unit", {"cached": 0}),
        ("accepted_lost", {"num_speculative_tokens": 0}),
        ("staging_reused", {"in_flight": 1}),
        ("staging_reused", {"partition": "single"}),
        ("receive_reused", {"in_flight": 1}),
        ("receive_reused", {"blocking": True}),
        ("frozen_value", {"execution": "eager"}),
        ("frozen_value", {"partition": "single"}),
        ("unmasked_state", {"recycled": False}),
        ("offset_32bit", {"block_elements": 1 << 10}),
        ("accepted_unbounded", {"num_speculative_tokens": 0}),
    ],
)
def test_a_hypothesis_is_clean_without_what_it_needs(
    play: Any, fault: str, without: dict[str, Any]
) -> None:
    assert run(play, fault, **{**ACTING[fault], **without}).found == ()


def test_a_column_in_the_wrong_unit_is_silent_inside_the_row_and_illegal_past_it(
    play: Any,
) -> None:
    inside = run(play, "wrong_block_unit", cached=4)
    assert {f.kind for f in inside.found} == {Kind.WRONG_VALUE}
    past = run(play, "wrong_block_unit", cached=8)
    assert {f.tensor for f in out_of_bounds(past)} == {"state_table", "state"}
    assert {f.tensor for f in past.found if ends_device(f)} == {"state"}


def test_a_late_copy_by_batch_row_moves_the_states_of_the_other_request(play: Any) -> None:
    played = run(play, "batch_row_late", **ACTING["batch_row_late"])
    copies = [f for f in played.found if f.kind is Kind.FOREIGN_WRITE and f.op == "state_copy"]
    assert copies
    assert {stage_of(played, f.launch) for f in copies} <= {0, 1}  # the last stage is not late


def test_stale_padding_writes_states_that_no_row_of_the_batch_may_touch(play: Any) -> None:
    played = run(play, "stale_padding", requests=2)
    writes = {f.op for f in played.found if f.kind is Kind.FOREIGN_WRITE}
    assert writes == {"conv_state", "gated_delta_rule"}


def test_a_stale_plan_of_columns_leads_past_the_table_and_from_there_anywhere(play: Any) -> None:
    played = run(play, "staging_reused")
    reads = [f for f in out_of_bounds(played) if f.tensor == "state_table"]
    writes = [f for f in played.found if f.kind is Kind.OUT_OF_BOUNDS_WRITE]
    assert reads
    assert reads[0].bytes_past_end == 0
    assert not any(ends_device(f) for f in reads)
    assert min(f.bytes_past_end or 0 for f in writes if f.op == "state_copy") > 1 << 30


@pytest.mark.parametrize("fault", ["none", *ACTING])
def test_both_lanes_see_the_same_accesses(play: Any, fault: str) -> None:
    values = ACTING.get(fault, {})
    ours = run(play, fault, **values)
    device = EmulatorDevice(memory=80 << 30)
    point = {**defaults(gdn_pipeline.PARAMETERS), **values}
    outcome = gdn_pipeline.run(Ops(device), point, {"fault": fault}, OWNERS)
    kinds = BOUNDS | OWNERSHIP
    assert difference(places(ours.found, kinds), places(device.findings, kinds)) == ""
    if fault != "stale_padding":  # two rows of one launch write one state: which wins is not said
        assert outcome.metrics["served"] == ours.outcome.metrics["served"]


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"partition": "4,4,5"}, "partition"),
        ({"partition": "many"}, "partition"),
        ({"layers": 10, "partition": "single"}, "layers"),
        ({"block_size": 3}, "block_size"),
        ({"chunk": 3}, "chunk"),
        ({"cached": 6}, "cached"),
        ({"cached": 12}, "cached"),
        ({"cached": 4, "prefix_caching": False}, "cached"),
        ({"requests": 3, "short_prompts": 2}, "requests"),
    ],
)
def test_contradictions_name_their_key(values: dict[str, Any], key: str) -> None:
    point = {**defaults(gdn_pipeline.PARAMETERS), **values}
    found = gdn_pipeline.contradiction(point, CORRECT)
    assert found is not None
    assert found[0] == key
