"""A session that was killed, stopped or corrected goes on; nothing is tried twice."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

ENDS = ("--good", "0.1.0", "--bad", "0.6.0")


def journal(engine: Any) -> Path:
    [path] = (engine.folder / "state" / "specrepro" / "runs").glob("*-bisect-*/release.jsonl")
    return path


def tried(path: Path) -> list[str]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line["build"] for line in lines if line.get("event") == "trial"]


def wait_for(count: int, engine: Any, process: Any) -> None:
    """Until the journal has so many trials."""
    folder = engine.folder / "state" / "specrepro" / "runs"
    for _ in range(1200):
        found = list(folder.glob("*-bisect-*/release.jsonl"))
        if found and len(tried(found[0])) >= count:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("no trial ended")


def test_killed_in_the_middle_the_same_command_goes_on_and_tries_nothing_twice(
    engine: Any,
) -> None:
    engine.releases("ggggbb")
    # the build that is tried third comes so slowly that the kill meets its trial
    engine.server.paths[f"/files/{engine.names['0.3.0']}"].behaviour = "trickle"
    started = engine.start(*ENDS, "--json")
    wait_for(2, engine, started)
    os.kill(started.pid, signal.SIGKILL)
    started.communicate()
    before = tried(journal(engine))
    engine.server.paths[f"/files/{engine.names['0.3.0']}"].behaviour = "ranges"
    record = engine.record(*ENDS)
    assert record["result"]["build"] == "0.5.0"
    after = tried(journal(engine))
    assert after[: len(before)] == before
    assert len(after) == len(set(after))
    assert engine.tried(record) == after


def test_a_line_that_was_cut_by_the_kill_is_no_trial(engine: Any) -> None:
    engine.releases("ggggbb")
    whole = engine.record(*ENDS)
    path = journal(engine)
    lines = path.read_text().splitlines(keepends=True)
    (path.parent / "run.json").unlink()
    path.write_text("".join(lines[:-1]) + lines[-1][:20])
    record = engine.record(*ENDS)
    assert record["run"]["id"] == whole["run"]["id"]
    assert record["result"] == whole["result"]
    assert len(tried(path)) == len(set(tried(path)))


def test_an_interrupt_prints_the_line_that_goes_on(engine: Any) -> None:
    engine.releases("ggggbb")
    engine.server.paths[f"/files/{engine.names['0.3.0']}"].behaviour = "trickle"
    started = engine.start(*ENDS)
    wait_for(2, engine, started)
    started.send_signal(signal.SIGTERM)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (130, "")
    assert "the same command goes on: specrepro bisect draft-length-gate" in err


def test_another_question_has_a_session_of_its_own_and_a_finished_one_begins_anew(
    engine: Any,
) -> None:
    engine.releases("gb")
    ends = ("--good", "0.1.0", "--bad", "0.2.0")
    runs = {engine.record(*arguments)["run"]["id"] for arguments in (
        ends, ends, (*ends, "--pin", "runner=v1"), (*ends, "--default-only"),
    )}  # fmt: skip
    assert len(runs) == 4


def test_a_search_out_of_trials_stays_open_and_goes_on_with_more(engine: Any) -> None:
    engine.releases("ggggbb")
    short = engine.record(*ENDS, "--max-trials", "3")
    assert (short["result"]["kind"], short["result"]["ending"]) == ("narrowed", "budget")
    assert short["status"] == 1
    none = engine.record("--good", "0.2.0", "--bad", "0.6.0", "--max-trials", "1")
    assert (none["result"]["kind"], none["status"]) == ("none", 125)
    more = engine.record(*ENDS)
    assert more["run"]["id"] == short["run"]["id"]
    assert more["result"]["build"] == "0.5.0"
    assert engine.tried(more)[:3] == engine.tried(short)


def test_a_session_can_be_looked_at_corrected_and_played_again(engine: Any, tmp_path: Path) -> None:
    engine.releases("ggggbb")
    engine.record(*ENDS, "--max-trials", "3")

    def session(*arguments: str | Path) -> str:
        ran = engine.run(*arguments, command="session")
        assert ran.returncode == 0, ran.stderr
        return str(ran.stdout)

    status = json.loads(session("status", "--json"))
    [line] = status["lines"]
    assert (status["finished"], line["trials"], line["candidates"]) == (False, 3, 6)
    assert line["next"]
    assert line["states"]["bad"][-1] == "0.6.0"
    assert "open" in session("status")

    log = tmp_path / "log.jsonl"
    log.write_text(session("log"))
    assert [json.loads(text).get("build") for text in log.read_text().splitlines()][-1] is not None

    taken = session("undo")
    undone = json.loads(session("status", "--json"))["lines"][0]
    assert undone["trials"] == 2
    assert taken.startswith("taken back: trial 1 of 0.")
    # what was taken back is in the log that was kept
    replayed = json.loads(session("replay", log, "--json"))["lines"][0]
    assert (replayed["trials"], replayed["next"]) == (3, line["next"])
    assert replayed | {"states": None} == line | {"states": None}

    session("mark", "0.3.0", "bad")
    record = engine.record(*ENDS)
    assert record["result"]["build"] == "0.3.0"
    [marked] = [row for row in record["trials"] if row["by"] == "person"]
    assert (marked["build"], marked["verdict"]) == ("0.3.0", "bad")

    session("mark", "0.3.0", "good")
    session("mark", "0.4.0", "skip")
    skipped = engine.record(*ENDS)
    assert skipped["result"]["kind"] == "narrowed"
    assert skipped["result"]["candidates"] == ["0.4.0", "0.5.0"]


def test_a_journal_is_played_again_where_nothing_else_of_its_session_is(
    engine: Any, tmp_path: Path
) -> None:
    engine.releases("ggggbb")
    record = engine.record(*ENDS)
    kept = engine.run("log", command="session").stdout
    (engine.folder / "state").rename(tmp_path / "gone")
    (tmp_path / "kept.jsonl").write_text(kept)
    asked = len(engine.server.asked)
    ran = engine.run("replay", tmp_path / "kept.jsonl", "--json", command="session")
    assert (ran.returncode, ran.stderr) == (0, "")
    [line] = json.loads(ran.stdout)["lines"]
    assert line["result"] == record["result"]
    assert line["next"] is None
    assert len(engine.server.asked) == asked
    assert not (engine.folder / "state").exists()
    page = engine.run("replay", tmp_path / "kept.jsonl", command="session").stdout
    assert "kept.jsonl   replayed" in page
    assert "first bad: 0.5.0" in page


def test_corrections_that_fit_no_session_are_refused(engine: Any, tmp_path: Path) -> None:
    engine.releases("gb")
    ran = engine.run("status", command="session")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "specrepro bisect CASE begins one" in ran.stderr
    engine.record("--good", "0.1.0", "--bad", "0.2.0")
    other = '{"schema": "specrepro/bisect-journal@1", "search": {}}\n'
    (tmp_path / "other.jsonl").write_text(other)
    (tmp_path / "text").write_text("\x1b[31m\n")
    [begun] = journal(engine).read_text().splitlines()[:1]
    options = json.loads(begun)["quest"]["options"]
    hostile = begun.replace(f'"jobs": {options["jobs"]}', '"jobs": 1000000000')
    assert hostile != begun
    (tmp_path / "hostile.jsonl").write_text(hostile + "\n")
    for arguments, words in (
        (("mark", "0.9.0", "bad"), "is no candidate"),
        (("mark", "0.1.0", "maybe"), "good, bad, skip"),
        (("replay", tmp_path / "other.jsonl"), "does not hold the search"),
        (("replay", tmp_path / "hostile.jsonl"), "is a number from 1 to"),
        (("replay", tmp_path / "none.jsonl"), "cannot read"),
        (("replay", tmp_path / "text"), "no journal of a search"),
        (("status", "--session", "2020"), "no run begins"),
    ):
        ran = engine.run(*arguments, command="session")
        assert (ran.returncode, ran.stdout) == (2, ""), arguments
        assert words in ran.stderr
        assert "\x1b" not in ran.stderr


def test_two_processes_do_not_work_in_one_session(engine: Any) -> None:
    engine.releases("ggggbb")
    engine.server.paths[f"/files/{engine.names['0.3.0']}"].behaviour = "trickle"
    started = engine.start(*ENDS)
    wait_for(2, engine, started)
    second = engine.run(*ENDS)
    started.kill()
    started.communicate()
    assert (second.returncode, second.stdout) == (2, "")
    assert "is being run by another process" in second.stderr
