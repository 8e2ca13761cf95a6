"""What is left of a child that is killed, hangs, crashes, lies or says nothing."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.lanes.process import (
    Children,
    Ending,
    complete,
    played,
    read_results,
    run_child,
)
from specrepro.repro.records import Seen, Status, Trial

TRIALS = [Trial("c", name, "reference", {}, Status.CLEAN) for name in ("a", "b", "c")]
WELL = Ending("", False, 0.1)
CLEAN = {
    "status": "clean",
    "reason": "",
    "stopped": False,
    "findings": [],
    "tensors": {},
    "evidence": [],
    "service": None,
    "metrics": {},
    "notes": [],
    "who": "",
    "seconds": 0.1,
}


def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A stand-in for the Python that a child runs in; the job directory is its last argument."""
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\nfor directory; do :; done\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    directory = tmp_path / "job"
    directory.mkdir()
    return directory


def write(directory: Path, *records: Any, end: str = "\n") -> None:
    text = "\n".join(json.dumps(record) for record in records) + end
    (directory / "result.ndjson").write_text(text)


def statuses(directory: Path, ending: Ending = WELL) -> list[Status]:
    return [result.status for result in read_results(directory, TRIALS, ending)]


def test_a_whole_file_is_read_in_order(tmp_path: Path) -> None:
    lines = [{"trial": n, **CLEAN} for n in range(3)]
    write(tmp_path, *reversed(lines), {"complete": 3})
    assert statuses(tmp_path) == [Status.CLEAN] * 3
    assert complete(tmp_path, 3)


def test_no_file_is_unknown(tmp_path: Path) -> None:
    assert statuses(tmp_path) == [Status.UNKNOWN] * 3


def test_an_empty_file_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "result.ndjson").touch()
    assert statuses(tmp_path) == [Status.UNKNOWN] * 3


def test_a_file_cut_at_any_byte_is_never_clean(tmp_path: Path) -> None:
    write(tmp_path, *[{"trial": n, **CLEAN} for n in range(3)], {"complete": 3})
    whole = (tmp_path / "result.ndjson").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "result.ndjson").write_bytes(whole[:length])
        assert statuses(tmp_path) == [Status.UNKNOWN] * 3
        assert not complete(tmp_path, 3)


def test_a_mark_for_another_number_of_trials_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, *[{"trial": n, **CLEAN} for n in range(3)], {"complete": 2})
    assert statuses(tmp_path) == [Status.UNKNOWN] * 3


def test_one_missing_line_leaves_that_trial_unknown(tmp_path: Path) -> None:
    write(tmp_path, {"trial": 0, **CLEAN}, {"trial": 2, **CLEAN}, {"complete": 3})
    assert statuses(tmp_path) == [Status.CLEAN, Status.UNKNOWN, Status.CLEAN]
    assert not complete(tmp_path, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "fine"},
        {"findings": [{"kind": "nonsense"}]},
        {"findings": [{"kind": "trap", "elements": [1]}]},
        {"findings": None},
        {"service": {"ok": True}},
        {"notes": 3},
        {"tensors": []},
        {"seconds": "soon"},
    ],
)
def test_a_record_of_another_shape_is_unknown(tmp_path: Path, change: dict[str, Any]) -> None:
    lines = [{"trial": n, **CLEAN} for n in range(3)]
    lines[1] |= change
    write(tmp_path, *lines, {"complete": 3})
    assert statuses(tmp_path) == [Status.CLEAN, Status.UNKNOWN, Status.CLEAN]


@given(st.binary(max_size=300))
def test_no_bytes_make_reading_fail_or_come_out_clean(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    directory = tmp_path_factory.mktemp("bytes")
    (directory / "result.ndjson").write_bytes(content)
    assert Status.CLEAN not in statuses(directory)


def test_a_bad_end_outweighs_a_whole_file(tmp_path: Path) -> None:
    write(tmp_path, *[{"trial": n, **CLEAN} for n in range(3)], {"complete": 3})
    ending = Ending("ended by SIGSEGV", False, 0.1)
    results = read_results(tmp_path, TRIALS, ending)
    assert {r.status for r in results} == {Status.UNKNOWN}
    assert {r.evidence[-1].state for r in results} == {Seen.SEEN}


def test_a_child_that_is_killed_names_the_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = interpreter(tmp_path, monkeypatch, "kill -SEGV $$")
    ending = run_child(directory, 10, Children())
    assert ending.reason == "ended by SIGSEGV"
    assert statuses(directory, ending) == [Status.UNKNOWN] * 3


def test_a_child_that_fails_names_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = interpreter(tmp_path, monkeypatch, "echo said >&2; exit 7")
    assert run_child(directory, 10, Children()).reason == "ended with status 7"
    assert (directory / "stderr").read_text() == "said\n"


def test_a_child_that_says_nothing_and_ends_well_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = interpreter(tmp_path, monkeypatch, "exit 0")
    assert statuses(directory, run_child(directory, 10, Children())) == [Status.UNKNOWN] * 3


def test_a_hanging_child_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'sleep 300 & echo $! > "$directory/grandchild"; sleep 300'
    directory = interpreter(tmp_path, monkeypatch, script)
    write(directory, {"trial": 0, **CLEAN})
    ending = run_child(directory, 0.5, Children())
    assert ending.timed_out
    assert statuses(directory, ending) == [Status.UNKNOWN, Status.TIMEOUT, Status.UNKNOWN]
    assert gone(int((directory / "grandchild").read_text()))


def test_a_working_child_is_seen_trial_by_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child goes on when the parent has been told, so no time decides what is seen."""
    wait = 'while [ ! -e "$directory/told" ]; do sleep 0.05; done'
    script = f'printf "one\\ntwo\\n" > "$directory/result.ndjson"; {wait}'
    directory = interpreter(tmp_path, monkeypatch, script)
    heard: list[int] = []

    def told() -> None:
        heard.append(played(directory))
        if heard[-1] == 2:
            (directory / "told").touch()

    assert run_child(directory, 60, Children(), told=told) == Ending("", False, ANY)
    assert heard[-1] == 2


def test_a_child_that_has_written_nothing_has_played_nothing(tmp_path: Path) -> None:
    assert played(tmp_path) == 0


def gone(pid: int) -> bool:
    """Whether a process has ended; it may take init a moment to collect it."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_child_gets_no_secret_and_no_path_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    directory = interpreter(
        tmp_path, monkeypatch, 'env > "$directory/seen"; pwd >> "$directory/seen"'
    )
    run_child(directory, 10, Children())
    seen = (directory / "seen").read_text()
    assert "hf_secret" not in seen
    assert "PYTHONPATH" not in seen
    assert "PYTHONSAFEPATH=1" in seen
    assert f"{directory}/scratch" in seen


def test_after_an_interrupt_no_child_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = interpreter(tmp_path, monkeypatch, 'touch "$directory/ran"')
    children = Children()
    children.stop()
    assert run_child(directory, 10, children).reason.startswith("not started")
    assert not (directory / "ran").exists()


def test_a_child_short_of_memory_is_unknown_not_clean(tmp_path: Path) -> None:
    job = {
        "lane": "reference",
        "scenario": "draft_gate",
        "owners": {},
        "stop_at_first": False,
        "memory_limit": 40 << 20,
        "trials": [{"variant": "a", "point": {}, "settings": {}}],
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    ending = run_child(tmp_path, 60, Children())
    [result] = read_results(tmp_path, TRIALS[:1], ending)
    assert result.status in (Status.UNKNOWN, Status.ERROR)


def test_signals_have_names() -> None:
    from specrepro.repro.lanes.process import signal_name

    assert signal_name(signal.SIGKILL) == "SIGKILL"
    assert signal_name(250) == "signal 250"
