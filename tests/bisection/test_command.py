"""`specrepro bisect` as a shell sees it, on releases of a local server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Told = Callable[[dict[str, Any]], tuple[Any, ...]]


def test_the_first_bad_release_is_found_in_the_tests_that_halving_needs(
    engine: Any, searched: Told
) -> None:
    versions = engine.releases("gggggbbbb")
    record = engine.record("--good", versions[0], "--bad", versions[-1])
    assert searched(record) == ("first_bad", "0.6.0", "0.5.0", 0)
    assert record["result"]["confidence"] == 1.0
    assert record["result"]["candidates"] == ["0.6.0"]
    # both ends, and 8 builds of which one is the first: ⌈log2 8⌉
    assert len(record["trials"]) <= 2 + 3
    assert len(set(engine.tried(record))) == len(record["trials"])


def test_a_fix_is_found_where_the_ends_are_the_other_way_round(engine: Any, searched: Told) -> None:
    versions = engine.releases("bbbggg")
    ends = ("--bad", versions[0], "--good", versions[-1])
    assert searched(engine.record(*ends)) == ("first_good", "0.4.0", "0.3.0", 0)
    assert searched(engine.record(*ends, "--find", "fix"))[0] == "first_good"


def test_ends_that_turn_out_to_be_the_other_way_round_are_searched_for_the_fix(
    engine: Any, searched: Told
) -> None:
    engine.releases("bbbg")
    record = engine.record("--good", "0.1.0", "--bad", "0.4.0")
    assert searched(record) == ("first_good", "0.4.0", "0.3.0", 0)
    assert record["find"] == "first_good"
    assert "the other way round" in record["result"]["notes"][0]


def test_without_a_good_end_releases_are_walked_back(engine: Any, searched: Told) -> None:
    engine.releases("ggbbbbbb")
    record = engine.record("--bad", "0.8.0")
    assert searched(record) == ("first_bad", "0.3.0", "0.2.0", 0)
    # 1, 2, 4 … from the bad end
    assert engine.tried(record)[:3] == ["0.8.0", "0.7.0", "0.6.0"]
    assert engine.record()["result"]["build"] == "0.3.0"


def test_a_fix_without_a_good_end_is_walked_to(engine: Any, searched: Told) -> None:
    engine.releases("bbbbbggg")
    record = engine.record("--bad", "0.1.0", "--find", "fix")
    assert searched(record) == ("first_good", "0.6.0", "0.5.0", 0)


def test_releases_that_cannot_be_tested_at_the_boundary_leave_it_narrowed(
    engine: Any, searched: Told
) -> None:
    engine.releases("gg??bb")
    record = engine.record("--good", "0.1.0", "--bad", "0.6.0")
    assert searched(record) == ("narrowed", "0.5.0", "0.2.0", 1)
    assert record["result"]["candidates"] == ["0.3.0", "0.4.0", "0.5.0"]
    assert set(record["result"]["tested"]) | set(record["result"]["presumed"]) == {
        "0.3.0",
        "0.4.0",
    }


@pytest.mark.parametrize(("states", "status"), [("gggg", 1), ("bbbb", 1), ("?gb?", 125)])
def test_ends_that_are_not_what_they_were_said_to_be_give_no_boundary(
    states: str, status: int, engine: Any
) -> None:
    engine.releases(states)
    record = engine.record("--good", "0.1.0", "--bad", "0.4.0")
    assert (record["result"]["kind"], record["status"]) == ("none", status)
    assert record["result"]["notes"]
    assert record["boundary"] is None


def test_a_scan_shows_the_defect_that_came_went_and_came_back(engine: Any, searched: Told) -> None:
    engine.releases("gbbgg?b")
    record = engine.record("--scan")
    [stage] = record["stages"]
    assert "".join(entry["state"][0] for entry in stage["timeline"]["builds"]) == "gbbggub"
    changes = [(c["find"], c["previous"], c["build"]) for c in stage["timeline"]["changes"]]
    assert changes == [
        ("first_bad", "0.1.0", "0.2.0"),
        ("first_good", "0.3.0", "0.4.0"),
        ("first_bad", "0.5.0", "0.7.0"),
    ]
    assert searched(record) == ("narrowed", "0.7.0", "0.5.0", 1)
    fix = engine.record("--scan", "--find", "fix")
    assert searched(fix) == ("first_good", "0.4.0", "0.3.0", 0)


def test_all_boundaries_that_trials_show_are_found_where_that_is_asked_for(
    engine: Any, searched: Told
) -> None:
    # two at once try the thirds of the line: bad, and good again
    engine.releases("ggbbggbb")
    ends = ("--good", "0.1.0", "--bad", "0.8.0", "--jobs", "2")
    one = engine.record(*ends)
    assert (searched(one), one["flips"]) == (("first_bad", "0.7.0", "0.6.0", 0), [])
    assert "there is more than one boundary" in one["result"]["notes"][0]
    every = engine.record(*ends, "--all-flips")
    assert searched(every) == searched(one)
    assert every["run"]["id"] != one["run"]["id"]
    assert [(f["find"], f["previous"], f["build"]) for f in every["flips"]] == [
        ("first_bad", "0.2.0", "0.3.0"),
        ("first_good", "0.4.0", "0.5.0"),
    ]
    # the trials of those are in the record, each under its stretch
    flips = {row["build"] for row in every["trials"] if row["stage"] == "flip"}
    assert {"0.2.0", "0.3.0", "0.4.0", "0.5.0"} <= flips
    report = (Path(every["run"]["path"]) / "report.md").read_text()
    listed = report.partition("Other boundaries")[2].partition("What changed there")[0]
    logs = [row["log"] for row in every["trials"] if row["stage"] == "flip"]
    assert logs
    assert all(f"`{log}`" in listed for log in logs)
    page = engine.run(*ends, "--all-flips", "--restart").stdout
    told = page.partition("  also ")[2].splitlines()
    assert [line.strip() for line in told[:2]] == [
        "first bad: 0.3.0 · last good: 0.2.0",
        "first good: 0.5.0 · last bad: 0.4.0",
    ]
    assert "--all-flips" in page.partition("again")[2]
    # and a session shows each stretch as a line of its own
    status = json.loads(engine.run("status", "--json", command="session").stdout)
    assert [line["name"] for line in status["lines"]] == [
        "release",
        "flip-0.1.0-0.3.0",
        "flip-0.3.0-0.6.0",
    ]
    assert {line["result"]["kind"] for line in status["lines"]} == {"first_bad", "first_good"}
    # a person's word about a build holds in every stretch
    assert engine.run("mark", "0.4.0", "good", command="session").returncode == 0
    status = json.loads(engine.run("status", "--json", command="session").stdout)
    results = [(line["name"], line["result"]["build"]) for line in status["lines"][1:]]
    assert results == [("flip-0.1.0-0.3.0", "0.3.0"), ("flip-0.3.0-0.6.0", "0.4.0")]
    fixed = engine.record(*ends, "--all-flips")["flips"][1]
    assert (fixed["find"], fixed["build"]) == ("first_good", "0.4.0")


def test_the_boundary_says_what_else_changed_there(engine: Any) -> None:
    engine.release("0.1.0", "g")
    engine.release("0.2.0", "b", needs="torch==2.10.0")
    boundary = engine.record("--good", "0.1.0", "--bad", "0.2.0")["boundary"]
    assert boundary["dependencies"] == [{"name": "torch", "before": "==2.9.0", "after": "==2.10.0"}]
    [file] = boundary["files"]
    assert (file["path"], file["change"]) == ("vllm/config/speculative.py", "changed")
    assert (file["added"], file["removed"]) == (1, 1)
    answers = {row["probe"]: (row["before"], row["after"]) for row in boundary["answers"]}
    assert answers["dict_override"] == ("applied", "lost")
    assert boundary["commits"] == {"previous": "00000a1a0", "build": "00000a2a0"}
    assert boundary["compare"].endswith("compare/v0.1.0...v0.2.0")


def test_pins_fix_switches_and_answer_as_with_does(engine: Any) -> None:
    engine.releases("gb")
    ends = ("--good", "0.1.0", "--bad", "0.2.0")
    pinned = engine.record(*ends, "--pin", "runner=v2")
    assert pinned["question"]["with"] == {"runner": "v2"}
    assert pinned["result"]["kind"] == "none"  # the defect is one of runner V1
    assert engine.record(*ends, "--pin", "runner=v1")["result"]["kind"] == "first_bad"


def test_pre_releases_and_yanked_ones_are_tried_when_asked_for(engine: Any) -> None:
    engine.releases("ggb")
    engine.release("0.2.1rc1", "b")
    assert engine.record("--bad", "0.3.0")["result"]["build"] == "0.3.0"
    assert engine.record("--bad", "0.3.0", "--pre")["result"]["build"] == "0.2.1rc1"
    engine.server.add_index(*engine.names.values(), yanked={engine.names["0.2.0"]: "broken"})
    # the listing is believed for ten minutes
    (engine.folder / "cache").rename(engine.folder / "old")
    record = engine.record("--bad", "0.3.0")
    assert record["result"]["previous"] == "0.1.0"
    assert record["stages"][0]["left_out"][-1].startswith("1 yanked")
    assert engine.record("--bad", "0.3.0", "--yanked")["result"]["previous"] == "0.2.0"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--find", "bug"), "--find is regression or fix"),
        (("--good", "0.2.0", "--bad", "0.1.0", "--find", "regression"), "lies a fix"),
        (("--good", "0.9.0", "--bad", "0.2.0"), "`0.9.0` is no release"),
        (("--good", "0.2.0", "--find", "fix"), "begins at a build that is bad"),
        (("--pin", "k=3"), "--pin fixes"),
        (("--pin", "runner=v1", "--with", "runner=v2"), "say two things"),
        (("--depth", "deep"), "unknown depth"),
        (("--commit-index", "https://wheels.example"), "does not list them"),
        (("--repo", "."), "no clone that git can read"),
        (("--vllm", "0.2.0"), "needs two releases"),
        (("--confidence", "2"), "confidence"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_is_tried(
    arguments: tuple[str, ...], words: str, engine: Any
) -> None:
    engine.releases("gb")
    ran = engine.run(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words in ran.stderr
    assert not [asked for asked in engine.server.asked if asked.path.startswith("/files/")]


def test_the_page_tells_the_narrowing_the_boundary_and_the_command_again(engine: Any) -> None:
    engine.releases("gggb")
    ran = engine.run("--good", "0.1.0", "--bad", "0.4.0")
    assert ran.returncode == 0
    assert ran.stdout.startswith("draft-length-gate   first bad: 0.4.0 · last good: 0.3.0\n")
    for words in (
        "compare/v0.3.0...v0.4.0",
        "vllm/config/speculative.py   +1 -1",
        "specrepro bisect draft-length-gate --good 0.1.0 --bad 0.4.0",
    ):
        assert words in ran.stdout
    narrowing = ran.stderr.splitlines()
    assert [line.split()[0] for line in narrowing] == ["0.4.0", "0.1.0", "0.2.0", "0.3.0"]
    assert "dict-override" in narrowing[0]
    assert "left" in narrowing[1]
    quiet = engine.run("--good", "0.1.0", "--bad", "0.4.0", "--quiet")
    assert quiet.stdout == "draft-length-gate   first bad: 0.4.0 · last good: 0.3.0\n"
    assert quiet.stderr == ""


def test_the_run_is_stored_shown_again_and_reported(engine: Any) -> None:
    engine.releases("gb")
    record = engine.record("--good", "0.1.0", "--bad", "0.2.0")
    again = "specrepro bisect draft-length-gate --good 0.1.0 --bad 0.2.0 --defect dict-override"
    assert record["again"] == again
    path = Path(record["run"]["path"])
    assert json.loads((path / "run.json").read_text()) == {
        key: value for key, value in record.items() if key != "status"
    }
    shown = engine.run("show", "latest", command="runs")
    assert shown.stdout.startswith("draft-length-gate   first bad: 0.2.0")
    report = (path / "report.md").read_text()
    assert "first bad: 0.2.0" in report
    assert "| `0.1.0` |" in report
    sent = engine.run(record["run"]["id"], command="report").stdout
    assert "first bad: 0.2.0" in sent
    assert "`dict_override`" in sent
    for row in record["trials"]:
        kept = json.loads((path / row["log"]).read_text())
        assert kept["version"] == row["build"]


def test_what_a_build_says_does_not_come_to_life_on_the_page(engine: Any) -> None:
    engine.release("0.1.0", "g")
    engine.release("0.2.0", "b", needs="\x1b[31m @somebody <script>")
    ran = engine.run("--good", "0.1.0", "--bad", "0.2.0")
    assert ran.returncode == 0
    assert "\x1b" not in ran.stdout + ran.stderr
    assert "dependencies: 0.2.0 has no METADATA that can be read" in " ".join(ran.stdout.split())


def test_the_command_again_has_every_option_that_was_given_and_no_other(engine: Any) -> None:
    engine.releases("gb")
    ends = ("--good", "0.1.0", "--bad", "0.2.0")
    plain = "specrepro bisect draft-length-gate --good 0.1.0 --bad 0.2.0 --defect dict-override"
    assert engine.record(*ends)["again"] == plain
    given = (
        "--with", "hf_overrides=dict", "--with", "runner=v1", "--pin", "async=off",
        "--confidence", "0.9", "--jobs", "2",
    )  # fmt: skip
    # in the order of the help, whatever order they were given in
    assert engine.record(*given, *ends)["again"] == " ".join([plain, *given])
