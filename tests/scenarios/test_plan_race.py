"""Scenario plan_race: who reads which plan, what hides the race and what removes it."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from specrepro.repro.lanes.emulator import EmulatorDevice
from specrepro.repro.lanes.reference import ReferenceDevice
from specrepro.repro.ops import Launch, Ops, Tensor
from specrepro.repro.records import Finding, Kind, Prediction
from specrepro.repro.scenarios import plan_forecast, plan_race, toy_model
from specrepro.repro.scenarios.declare import defaults

READ = Kind.OUT_OF_BOUNDS_READ
FOREIGN = Kind.FOREIGN_READ
LOSS = Kind.ACCEPTANCE_LOSS
LIBRARY = {"reused": "library"}
ENGINE = {"reused": "engine"}
OWNERS = {"block_table": "row", "key_cache": "block", "value_cache": "block"}


def losers(found: tuple[Finding, ...]) -> set[int | None]:
    return {f.request for f in found if f.kind is LOSS}


def test_the_merge_reads_the_row_that_only_the_later_plan_has(play: Any) -> None:
    played = play("plan_race", LIBRARY)
    # lengths 11..14, then 12..15 and 13..16 over pages of 4: one request a pass needs a new page
    chunks = [sum(-(-(n + j) // 4) for n in (11, 12, 13, 14)) for j in range(3)]
    assert chunks == [14, 15, 16]
    assert played.elements(READ, "merge_states", "partial_out") == set(range(14 * 16, 16 * 16))
    assert played.elements(READ, "merge_states", "partial_lse") == set(range(14 * 2, 16 * 2))
    assert {f.step for f in played.found if f.kind is READ} == {1, 2}  # the last plan is its own


def test_the_missing_row_is_the_last_requests_and_only_it_loses_drafts(play: Any) -> None:
    played = play("plan_race", LIBRARY)
    assert losers(played.found) == {3}
    assert played.outcome.metrics["right_drafts"] == [4, 3, 3, 4]


def test_no_write_goes_wrong_and_target_tokens_stay_right(play: Any) -> None:
    for reused in ("engine", "library", "both"):
        played = play("plan_race", {"reused": reused}, rounds=3)
        assert played.found
        assert not played.kinds() & {Kind.OUT_OF_BOUNDS_WRITE, Kind.FOREIGN_WRITE}
        assert played.outcome.service.finished
        assert played.outcome.service.tokens_right


def test_a_later_plan_of_the_engine_costs_acceptance_and_reads_nothing_wrong(play: Any) -> None:
    played = play("plan_race", ENGINE)
    assert played.kinds() == {LOSS}
    assert losers(played.found) == {0, 1, 2, 3}


def test_an_engine_plan_one_ahead_shows_each_request_one_empty_slot(play: Any) -> None:
    played = play("plan_race", {**ENGINE, "pages": "whole"}, requests=1, num_speculative_tokens=3)
    [start] = plan_race.prompts({"requests": 1, "prompt": 9, "stagger": 1, "seed": 1})
    tokens = toy_model.continuation(start, 11, 0)
    # 11 tokens averaged over 12 slots, then scaled to 11 again
    seen = round(sum(tokens) * 11 / 12)
    wrong = toy_model.next_token(seen, tokens[-1])
    assert wrong != toy_model.next_token(sum(tokens), tokens[-1])
    assert losers(played.found) == {0}
    assert played.outcome.metrics["right_drafts"] == [1, 0, 1]


def test_both_buffers_stale_read_other_requests_pages(play: Any) -> None:
    played = play("plan_race", {})
    assert played.kinds() == {READ, FOREIGN, LOSS}
    hit = played.elements(FOREIGN, "planned_attention", "key_cache")
    assert hit == played.elements(FOREIGN, "planned_attention", "value_cache")
    # every unit is a page of 4 slots of 16 elements; the null block is page 0
    columns = -(-(12 + 6 + 4) // 4)
    owners = {(element // 64 - 1) // columns for element in hit}
    readers = {f.request for f in played.found if f.kind is FOREIGN}
    assert owners == {0, 1, 2}
    assert readers == {1, 2, 3}


def test_without_declared_owners_the_row_past_the_end_is_still_found(play: Any) -> None:
    assert play("plan_race", {}, owners={}).kinds() == {READ, LOSS}


@pytest.mark.parametrize("pages", ["small", "whole"])
@pytest.mark.parametrize("host", ["fresh", "wait", "pageable"])
@pytest.mark.parametrize("pace", ["steady", "drawn"])
def test_a_fix_is_clean_and_serves_at_every_distance(
    play: Any, host: str, pages: str, pace: str
) -> None:
    for ahead in (0, 1, 8, 12, 33, 200):
        played = play(
            "plan_race", {"host": host, "pages": pages}, host_ahead=ahead, pace=pace, rounds=2
        )
        served = played.outcome.service
        assert played.found == ()
        assert played.predicted == ()
        assert served.ok
        assert served.drafted == served.accepted == 2 * 4 * 4


class Watched(ReferenceDevice):
    """Counts the passes that the host has got to while the device merges one."""

    def __init__(self) -> None:
        super().__init__(memory=80 << 30)
        self.queued = 0
        self.lead: list[int] = []

    def tensor(self, name: str, *rest: Any, **more: Any) -> Tensor:
        self.queued += name == "partial_out"
        return super().tensor(name, *rest, **more)

    def launch(self, launch: Launch) -> None:
        if launch.op == "merge_states":
            self.lead.append(self.queued - len(self.lead) - 1)
        super().launch(launch)


@pytest.mark.parametrize(
    ("variant", "ahead"),
    [({"host": "fresh"}, True), ({"host": "wait"}, True), ({"host": "pageable"}, True)]
    + [({"fence": fence}, False) for fence in ("before_plan", "after_copies", "after_attention")],
)
def test_the_fixes_let_the_host_run_ahead_and_the_fences_do_not(
    variant: dict[str, str], ahead: bool
) -> None:
    device = Watched()
    point = {**defaults(plan_race.PARAMETERS), "host_ahead": 60}
    plan_race.run(Ops(device), point, {**defaults(plan_race.SETTINGS), **variant}, OWNERS)
    assert len(device.lead) == 3
    assert (max(device.lead) > 0) is ahead


def test_launches_that_block_hide_the_race(play: Any) -> None:
    played = play("plan_race", {}, host_ahead=0)
    assert played.found == ()
    assert played.outcome.service.ok


@pytest.mark.parametrize("fence", ["before_plan", "after_copies", "after_attention"])
def test_a_fence_anywhere_hides_the_race_and_says_that_it_masks(play: Any, fence: str) -> None:
    played = play("plan_race", {"fence": fence}, host_ahead=200, rounds=2)
    assert played.found == ()
    assert played.outcome.service.ok
    assert any("masks the race" in note for note in played.outcome.notes)


def test_plans_of_one_layout_make_the_librarys_race_invisible(play: Any) -> None:
    played = play("plan_race", {**LIBRARY, "pages": "whole"}, host_ahead=200, rounds=2)
    assert played.found == ()
    assert played.outcome.service.ok


def test_a_loop_that_crosses_no_page_border_makes_it_invisible_too(play: Any) -> None:
    # all prompts alike: the loop's lengths are prompt + 2 ... prompt + 4
    values = {"block_size": 8, "stagger": 0, "host_ahead": 200}
    clean = {p for p in range(1, 30) if not play("plan_race", LIBRARY, prompt=p, **values).found}
    assert clean == {p for p in range(1, 30) if -(-(p + 2) // 8) == -(-(p + 4) // 8)}


def test_a_split_that_changes_with_the_pages_in_a_chunk_shows_as_well(play: Any) -> None:
    # 14, 15, 16 pages: a grid of 14 makes chunks of two pages from the second plan on
    played = play("plan_race", LIBRARY, max_chunks=14)
    assert [row["chunks"] for row in played.outcome.metrics["passes"]] == [14, 8, 8]
    assert played.found
    assert {f.step for f in played.found if f.kind is not LOSS} == {1}


@pytest.mark.parametrize(("k", "faulty"), [(1, False), (2, False), (3, True), (4, True)])
def test_it_takes_two_plans_in_one_step(play: Any, k: int, faulty: bool) -> None:
    played = play("plan_race", {}, num_speculative_tokens=k, host_ahead=200)
    assert bool(played.found) is faulty
    assert played.outcome.service.finished


def test_one_request_is_enough(play: Any) -> None:
    played = play("plan_race", {}, requests=1, prompt=10, num_speculative_tokens=3)
    # 12 positions have three pages of 4, 13 have four
    assert played.elements(READ, "merge_states", "partial_out") == set(range(3 * 16, 4 * 16))


def test_the_distance_decides_whose_plan_is_stale(play: Any) -> None:
    def found(ahead: int) -> tuple[list[int], list[int]]:
        first = play("plan_race", {}, host_ahead=ahead).outcome.metrics["passes"][0]
        return first["engine_plan"], first["library_plan"]

    # a pass is 10 pieces; the engine's copies are pieces 2 to 4 of it, the library's is piece 5
    assert found(7) == ([1], [1])
    assert found(8) == ([1, 2], [1])
    assert found(9) == ([1, 2], [1])
    assert found(10) == ([2], [2])
    assert found(20) == ([3], [3])


def test_a_drawn_pace_repeats_by_its_seed_and_shows_the_race_for_some(play: Any) -> None:
    def run(seed: int) -> list[dict[str, Any]]:
        played = play("plan_race", {}, host_ahead=40, pace="drawn", seed=seed)
        return list(played.outcome.metrics["passes"])

    runs = [run(seed) for seed in range(12)]
    assert runs == [run(seed) for seed in range(12)]
    assert {all(one["own"] for one in passes) for passes in runs} == {True, False}


def union(ones: tuple[Finding | Prediction, ...]) -> dict[tuple[str, ...], set[int | None]]:
    sets: dict[tuple[str, ...], set[int | None]] = defaultdict(set)
    for one in ones:
        key = (str(one.kind), str(one.op), str(one.tensor))
        if one.kind is LOSS:
            sets[key].add(one.request)
        elif one.elements:
            sets[key].update(range(one.elements[0], one.elements[1] + 1))
    return dict(sets)


@given(
    variant=st.fixed_dictionaries(
        {
            "host": st.sampled_from(["reuse", "reuse", "reuse", "fresh", "wait", "pageable"]),
            "reused": st.sampled_from(["engine", "library", "both"]),
            "pages": st.sampled_from(["small", "small", "small", "whole"]),
            "fence": st.sampled_from(["none", "none", "none", "after_copies"]),
        }
    ),
    values=st.fixed_dictionaries(
        {
            "num_speculative_tokens": st.integers(1, 8),
            "requests": st.integers(1, 5),
            "prompt": st.integers(1, 24),
            "stagger": st.integers(0, 4),
            "block_size": st.sampled_from([1, 2, 3, 4, 8]),
            "max_chunks": st.sampled_from([5, 8, 12, 16, 64]),
            "rounds": st.integers(1, 3),
            "host_ahead": st.integers(0, 40),
            "pace": st.sampled_from(["steady", "drawn"]),
            "seed": st.integers(0, 1000),
        }
    ),
)
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_closed_form_says_what_a_run_finds(play: Any, variant: Any, values: Any) -> None:
    point = {**defaults(plan_race.PARAMETERS), **values}
    if variant["host"] == "reuse":
        assume(not plan_forecast.forecast(point, variant).open)
    played = play("plan_race", variant, **values)
    assert union(played.found) == union(played.predicted)
    assert played.outcome.service.finished
    assert played.outcome.service.tokens_right


def test_where_a_rounding_is_open_the_closed_form_names_no_elements() -> None:
    # a damaged mean in the middle of two integers, one of which would give the right draft
    point = {**defaults(plan_race.PARAMETERS), "requests": 3, "rounds": 2, "seed": 89}
    forecast = plan_forecast.forecast(point, defaults(plan_race.SETTINGS))
    assert forecast.open
    assert forecast.wrong
    assert all(p.elements is None for p in forecast.predictions())


@pytest.mark.parametrize("variant", [{}, LIBRARY, ENGINE, {"host": "wait"}])
@pytest.mark.parametrize("values", [{}, {"max_chunks": 14}, {"host_ahead": 9}])
def test_the_kernels_do_what_the_references_do(
    play: Any, variant: dict[str, str], values: dict[str, int]
) -> None:
    point = {**defaults(plan_race.PARAMETERS), **values}
    device = EmulatorDevice(memory=80 << 30)
    outcome = plan_race.run(Ops(device), point, {**defaults(plan_race.SETTINGS), **variant}, OWNERS)
    played = play("plan_race", variant, **values)

    def places(found: Any) -> dict[Any, set[int]]:
        sets: dict[Any, set[int]] = defaultdict(set)
        for f in found:
            sets[f.kind, f.launch, f.op, f.tensor, f.step].update(
                range(f.elements[0], f.elements[1] + 1)
            )
        return dict(sets)

    assert places((*device.findings, *outcome.findings)) == places(played.found)
    assert outcome.metrics == played.outcome.metrics


def test_a_grid_smaller_than_the_batch_is_refused() -> None:
    point = {**defaults(plan_race.PARAMETERS), "requests": 8, "max_chunks": 7}
    found = plan_race.contradiction(point, defaults(plan_race.SETTINGS))
    assert found is not None
    assert found[0] == "max_chunks"
