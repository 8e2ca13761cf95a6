"""An index that fails, answers wrongly or sends rubbish: no build is blamed for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ENDS = ("--good", "0.1.0", "--bad", "0.4.0")


def served(engine: Any, version: str) -> Any:
    return engine.server.paths[f"/files/{engine.names[version]}"]


@pytest.mark.parametrize("failures", [[500], [429, 503], [502]])
def test_a_server_that_fails_and_recovers_changes_nothing(failures: list[int], engine: Any) -> None:
    engine.releases("ggbb")
    served(engine, "0.2.0").failures = list(failures)
    engine.server.paths["/simple/vllm/"].failures = list(failures)
    record = engine.record(*ENDS)
    assert (record["result"]["build"], record["status"]) == ("0.3.0", 0)
    assert all(row["verdict"] in {"good", "bad"} for row in record["trials"])


def test_a_server_that_goes_on_failing_is_no_verdict_and_the_session_stays_open(
    engine: Any,
) -> None:
    engine.releases("ggbb")
    served(engine, "0.2.0").failures = [503] * 99
    stopped = engine.record(*ENDS)
    assert (stopped["result"]["ending"], stopped["status"]) == ("infra", 1)
    assert {row["verdict"] for row in stopped["trials"] if row["build"] == "0.2.0"} == {"infra"}
    served(engine, "0.2.0").failures = []
    record = engine.record(*ENDS)
    assert record["run"]["id"] == stopped["run"]["id"]
    assert (record["result"]["build"], record["status"]) == ("0.3.0", 0)


def test_a_scan_stops_where_the_server_fails_build_after_build_and_goes_on_later(
    engine: Any,
) -> None:
    versions = engine.releases("ggbb")
    for version in versions:
        served(engine, version).failures = [500] * 99
    stopped = engine.record("--scan")
    assert (stopped["result"]["kind"], stopped["result"]["ending"]) == ("none", "infra")
    assert stopped["status"] == 125
    assert set(engine.tried(stopped)) == {"0.1.0", "0.2.0"}
    for version in versions:
        served(engine, version).failures = []
    record = engine.record("--scan")
    assert record["run"]["id"] == stopped["run"]["id"]
    assert record["result"]["build"] == "0.3.0"


def test_an_index_that_does_not_answer_ends_the_search_before_it_begins(engine: Any) -> None:
    engine.releases("gb")
    engine.server.paths["/simple/vllm/"].failures = [500] * 99
    ran = engine.run("--good", "0.1.0", "--bad", "0.2.0")
    assert (ran.returncode, ran.stdout) == (125, "")
    assert "tried 3 times: status 500" in ran.stderr
    assert not (engine.folder / "state" / "specrepro" / "runs").exists()


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("whole", "does not serve ranges"),
        ("resized", "was asked for bytes="),
        ("shifted", "was asked for bytes="),
        ("packed", "answers a range with"),
    ],
)
def test_a_wheel_whose_server_answers_wrongly_cannot_be_tested_and_says_why(
    behaviour: str, words: str, engine: Any
) -> None:
    engine.releases("g?bb")
    served(engine, "0.2.0").behaviour = behaviour
    record = engine.record(*ENDS)
    assert (record["result"]["kind"], record["status"]) == ("narrowed", 1)
    assert record["result"]["candidates"] == ["0.2.0", "0.3.0"]
    assert words in record["result"]["tested"]["0.2.0"]


def test_a_body_that_is_cut_is_the_servers_failure(engine: Any) -> None:
    engine.releases("ggbb")
    served(engine, "0.2.0").behaviour = "cut"
    record = engine.record(*ENDS)
    assert record["result"]["ending"] == "infra"
    assert {row["verdict"] for row in record["trials"] if row["build"] == "0.2.0"} == {"infra"}


def test_a_wheel_that_is_not_what_its_record_says_is_not_believed(engine: Any) -> None:
    engine.releases("ggbb")
    path = served(engine, "0.2.0")
    files = engine.sources("b")
    edited = {name: content + b"\n" for name, content in files.items()}

    def lie(rows: list[list[str]]) -> list[list[str]]:
        return [[name, "sha256=" + "A" * 43, size] for name, _, size in rows]

    assert path.content
    engine.server.add_release(
        engine.wheels.make(edited, "0.2.0", record=lie), engine.names["0.2.0"]
    )
    engine.server.add_index(*engine.names.values())
    record = engine.record(*ENDS)
    assert record["result"]["kind"] == "narrowed"
    assert "not what RECORD says" in record["result"]["tested"]["0.2.0"]


def test_a_disk_without_room_stops_the_search_and_what_was_tried_is_kept(engine: Any) -> None:
    engine.releases("ggbb")
    # a file may grow to so many bytes: the record of a build does not fit
    limited = (
        "import resource, sys; from specrepro.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)); main()"
    )
    environment = engine.environment | {"XDG_CACHE_HOME": str(engine.folder / "none")}
    (engine.folder / "none").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", limited, "bisect", *engine.CASE, *ENDS],
        env=environment,
        cwd=engine.folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    assert "could not be written down: File too large" in ran.stderr
    assert "the same command goes on" in ran.stderr
    record = engine.record(*ENDS)
    assert record["result"]["build"] == "0.3.0"
    assert len(engine.tried(record)) == len(set(engine.tried(record)))


def test_a_cache_that_cannot_be_written_costs_requests_and_nothing_else(
    engine: Any, tmp_path: Path
) -> None:
    engine.releases("gb")
    (tmp_path / "file").write_text("")
    record = engine.record(
        "--good", "0.1.0", "--bad", "0.2.0", "--cache", tmp_path / "file" / "cache"
    )
    assert record["result"]["build"] == "0.2.0"
