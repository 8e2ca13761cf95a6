"""Processes of an engine: whatever happens, none of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specrepro.repro.check.engine import process
from specrepro.repro.check.engine.observe import Raised, log_exception
from specrepro.repro.check.engine.process import drive
from specrepro.repro.errors import UntestableError

# in place of an interpreter: starts a worker that leaves its session, and does not end
ENGINE = """#!/bin/sh
setsid sleep 600 &
echo $! > {pids}
sleep 600 &
echo $! >> {pids}
{then}
"""
DRIVE = """
import sys
from pathlib import Path
from specrepro.repro.check.engine.process import drive
folder = Path(sys.argv[1])
print(drive(folder / "engine", folder, {}, caches=folder / "caches", seconds=60))
"""


def engine(folder: Path, then: str) -> Path:
    program = folder / "engine"
    program.write_text(ENGINE.format(pids=folder / "pids", then=then))
    program.chmod(0o755)
    return program


def alive(folder: Path) -> list[int]:
    """Which of the processes that the engine started are there."""
    pids = (folder / "pids").read_text().split()
    return [int(pid) for pid in pids if Path(f"/proc/{pid}").exists()]


def started(folder: Path) -> list[int]:
    """The processes of the engine, once both are there."""
    for _ in range(200):
        pids = folder / "pids"
        if pids.exists() and len(pids.read_text().split()) == 2:
            return alive(folder)
        time.sleep(0.05)
    pytest.fail("the engine did not start")


def gone(folder: Path) -> bool:
    for _ in range(200):
        if not alive(folder):
            return True
        time.sleep(0.05)
    return False


def emptied(folder: Path) -> bool:
    for _ in range(200):
        if not list(folder.iterdir()):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("then", "reason"),
    [("exit 0", ""), ("exit 3", "ended with status 3"), ("kill -9 $$", "ended by SIGKILL")],
)
def test_workers_that_outlive_their_parent_are_ended_and_counted(
    then: str, reason: str, tmp_path: Path
) -> None:
    program = engine(tmp_path, then)
    ending = drive(program, tmp_path, {}, caches=tmp_path / "caches")
    assert (ending.reason, ending.timed_out, ending.left) == (reason, False, 2)
    assert alive(tmp_path) == []


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_engine_ends_with_the_process_that_drives_it_however_that_ends(
    end: signal.Signals, tmp_path: Path
) -> None:
    engine(tmp_path, "sleep 600")
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    driving = subprocess.Popen(
        [sys.executable, "-c", DRIVE, str(tmp_path)],
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    try:
        assert len(started(tmp_path)) == 2
    finally:
        os.kill(driving.pid, end)
        driving.communicate(timeout=30)
    assert gone(tmp_path)
    assert emptied(scratch)


@pytest.mark.parametrize("where", ["", f"> {process.OBSERVATIONS}"])
def test_a_log_or_observations_without_end_are_cut(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MOST_LOG", 1 << 20)
    then = f"cd {tmp_path}; yes {where}"
    ending = drive(engine(tmp_path, then), tmp_path, {}, caches=tmp_path / "caches", seconds=60)
    assert ending.reason == "what it writes grew beyond 1 MiB"
    assert alive(tmp_path) == []


def test_secrets_of_the_caller_are_not_for_an_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hidden")
    program = engine(tmp_path, f"env > {tmp_path / 'env'}")
    drive(program, tmp_path, {"VLLM_USE_V2_MODEL_RUNNER": "1"}, caches=tmp_path / "caches")
    variables = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert "HF_TOKEN" not in variables
    assert variables["VLLM_USE_V2_MODEL_RUNNER"] == "1"
    assert variables["HOME"] != os.environ["HOME"]


def test_a_program_that_is_none_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(UntestableError, match="no program that can be started"):
        drive(tmp_path / "engine", tmp_path, {}, caches=tmp_path / "caches")


def test_an_engine_that_waits_for_a_worker_that_failed_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "QUIET", 0.5)
    then = "echo '(Worker_PP0 pid=9) ERROR 11-30 [x.py:1] AssertionError' >&2; sleep 600"
    ending = drive(engine(tmp_path, then), tmp_path, {}, caches=tmp_path / "caches", seconds=60)
    assert ending.reason == "nothing more for 0.5 s after an error"
    assert log_exception(tmp_path / process.LOG) == Raised("AssertionError")
    assert alive(tmp_path) == []


def test_an_exception_in_a_log_has_the_innermost_place_of_its_traceback(tmp_path: Path) -> None:
    # as a worker of vLLM 0.28.0 writes it
    packages = "/venv/lib/python3.11/site-packages/vllm/v1"
    lines = [
        "Traceback (most recent call last):",
        f'  File "{packages}/executor/multiproc_executor.py", line 1040, in worker_busy_loop',
        "    output = func(*args, **kwargs)",
        "             ^^^^^^^^^^^^^^^^^^^^^",
        f'  File "{packages}/worker/mamba_utils.py", line 556, in get_mamba_groups',
        "    assert all(mamba_specs[0] == spec for spec in mamba_specs)",
        "AssertionError",
    ]
    prefix = "(Worker_PP0 pid=9) ERROR 11-30 14:09:03 [multiproc_executor.py:1047] "
    log = tmp_path / process.LOG
    log.write_text("".join(f"{prefix}{line}\n" for line in lines))
    at = (
        "vllm/v1/worker/mamba_utils.py:556 in get_mamba_groups: "
        "assert all(mamba_specs[0] == spec for spec in mamba_specs)"
    )
    assert log_exception(log) == Raised("AssertionError", at)
    log.write_text(f"{prefix}ValueError: too long\n")
    assert log_exception(log) == Raised("ValueError: too long")
    log.write_text("nothing wrong\n")
    assert log_exception(log) is None
