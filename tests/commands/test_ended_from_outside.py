"""Who ends a command from outside gets the status of an interrupt, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CODE = "from specrepro.cli import main; main()"


def started(folder: Path, *before: str) -> subprocess.Popen[str]:
    """`specrepro sanitize` of a script that makes ./ready when it runs; its scratch is ./tmp."""
    (folder / "tmp").mkdir()
    script = folder / "script.py"
    script.write_text("import pathlib, time\npathlib.Path('ready').touch()\ntime.sleep(300)\n")
    process = subprocess.Popen(
        [*before, sys.executable, "-c", CODE, "sanitize", str(script)],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # the signal is for it alone
    )
    for _ in range(1200):
        if (folder / "ready").exists():
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("the script did not start")


def left(folder: Path) -> list[str]:
    """Temporary files, and processes that work in the folder."""
    files = [path.name for path in (folder / "tmp").iterdir()]
    working = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            working += [process.name] if (process / "cwd").readlink() == folder else []
        except OSError:  # it has ended, or is another user's
            continue
    return files + working


@pytest.mark.compilers
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_cancelled_job_ends_as_interrupted_and_leaves_nothing(
    number: signal.Signals, tmp_path: Path
) -> None:
    process = started(tmp_path)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert left(tmp_path) == []


@pytest.mark.compilers
def test_who_asked_to_go_on_without_a_terminal_is_not_ended(tmp_path: Path) -> None:
    process = started(tmp_path, "nohup")
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 130
