"""Trials of variations lie beside those of the lines: a session shows them, and takes them back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro import store
from specrepro.repro.bisection import beside
from specrepro.repro.bisection.variation import Variation, Varied
from specrepro.repro.bisection.verdicts import Bad, Good, Infra, Observation, Verdict

ENDS = ("--good", "0.1.0", "--bad", "0.3.0")
RUNNER = Variation("0.3.0", True, Varied.SWITCH, (("runner", "v2"),))
CACHING = Variation("0.3.0", True, Varied.SWITCH, (("prefix_caching", "on"),))
TORCH = Variation("0.2.0", False, Varied.PACKAGES, (("torch", "2.10.0"),))

Session = Callable[..., str]


@pytest.fixture
def path(engine: Any) -> Path:
    """A session that found 0.3.0, with trials of three variations beside it."""
    engine.releases("ggb")
    found = Path(engine.record(*ENDS)["run"]["path"])
    vary(found, RUNNER, Good(), CACHING, Bad("gate"), TORCH, Infra("no room"))
    return found


def vary(path: Path, *pairs: Variation | Verdict) -> None:
    """Add trials: a variation and the verdict of its first trial, again and again."""
    journal = beside.open_journal(path, str(store.request(path)["key"]), "0.3.0", "0.2.0")
    for variation, verdict in zip(pairs[::2], pairs[1::2], strict=True):
        assert isinstance(variation, Variation)
        assert not isinstance(verdict, Variation)
        journal.append(Observation(variation.name, 1, verdict, 1.0, varied=variation))


@pytest.fixture
def session(engine: Any) -> Session:
    def run(*arguments: str | Path) -> str:
        ran = engine.run(*arguments, command="session")
        assert ran.returncode == 0, ran.stderr
        return str(ran.stdout)

    return run


def variations(text: str) -> dict[str, Any]:
    [found] = json.loads(text)["variations"]
    return dict(found)


def test_status_and_replay_say_what_came_of_each_variation(
    path: Path, session: Session, tmp_path: Path
) -> None:
    found = variations(session("status", "--json"))
    assert (found["bad"], found["good"], found["current"]) == ("0.3.0", "0.2.0", True)
    assert found["trials"] == 3
    said = [(one["changes"], one["fault"], one["carries"], one["trials"]) for one in found["tried"]]
    assert said == [
        ({"runner": "v2"}, "not shown", True, 1),
        ({"prefix_caching": "on"}, "shown", False, 1),
        # what failed for the machine is tried again
        ({"torch": "2.10.0"}, None, False, 1),
    ]
    page = session("status")
    assert "of 0.3.0 (bad) and 0.2.0 (good)" in page
    assert "0.3.0 with runner v2: does not show the fault: this takes it away" in page
    assert "0.2.0 with torch 2.10.0: not decided yet" in page
    # a log that is kept has them, with all that was varied
    (tmp_path / "log").write_text(session("log"))
    assert variations(session("replay", tmp_path / "log", "--json")) == found


def test_undo_takes_the_latest_back_be_it_of_a_variation_or_a_mark(
    path: Path, session: Session
) -> None:
    assert "finished" in session("status")
    taken = session("undo")
    assert taken.startswith("taken back: trial 1 of 0.2.0 with packages of 0.3.0: torch 2.10.0;")
    status = session("status", "--json")
    assert json.loads(status)["finished"] is False
    assert [one["build"] for one in variations(status)["tried"]] == ["0.3.0", "0.3.0"]
    session("mark", "0.3.0", "bad")
    session("mark", "0.3.0", "bad")
    assert session("undo").startswith("taken back: the mark of 0.3.0;")
    assert session("undo").startswith("taken back: the mark of 0.3.0;")
    assert session("undo").startswith("taken back: trial 1 of 0.3.0 with prefix_caching on;")


def test_where_a_mark_moves_the_boundary_variations_of_the_old_one_stay_and_are_not_undone(
    path: Path, session: Session
) -> None:
    session("mark", "0.2.0", "bad")
    status = session("status", "--json")
    assert json.loads(status)["lines"][0]["result"]["build"] == "0.2.0"
    assert (variations(status)["current"], variations(status)["trials"]) == (False, 3)
    assert "(no boundary as the lines stand)" in session("status")
    # those of the old boundary would come first while it stands
    assert session("undo").startswith("taken back: the mark of 0.2.0;")
    assert variations(session("status", "--json"))["current"] is True


def test_a_variation_cannot_be_marked_and_its_journal_alone_is_not_played(
    path: Path, engine: Any, tmp_path: Path
) -> None:
    before = [file.read_bytes() for file in sorted(path.glob("*.jsonl"))]
    [kept] = path.glob("variation-*.jsonl")
    for arguments, words in (
        (("mark", RUNNER.name, "good"), "is no build but a variation of one"),
        (("replay", kept), "not the search they are of"),
    ):
        ran = engine.run(*arguments, command="session")
        assert (ran.returncode, ran.stdout) == (2, "")
        assert words in ran.stderr
        assert "specrepro session" in ran.stderr.partition("hint:")[2]
    assert [file.read_bytes() for file in sorted(path.glob("*.jsonl"))] == before


def test_a_line_that_calls_a_variation_something_else_is_damaged(path: Path, engine: Any) -> None:
    [kept] = path.glob("variation-*.jsonl")
    kept.write_text(kept.read_text().replace('["runner", "v2"]', '["runner", "v3"]'))
    ran = engine.run("status", command="session")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "damaged" in ran.stderr
    assert f"{kept.name}:2" in ran.stderr
