"""The script for a machine with a GPU: on one made up, part by part, and where there is none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from .conftest import loaded

HERE = Path(__file__).parent
SCRIPT = HERE / "run.sh"


@pytest.fixture
def box(made_up_gpu: Any, tmp_path: Path) -> Any:
    box = made_up_gpu(tmp_path)
    box.xid(31)
    return box


def asked(box: Any, *words: str) -> tuple[int, Path, str]:
    """run.sh with the machine's own Python: its status, the results, what it said."""
    out = box.folder / "results"
    box.more["PYTHON"] = str(box.python)
    done = box.command(["sh", str(SCRIPT), "--out", str(out), *words])
    return done.returncode, out, done.stderr


def read(out: Path, name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((out / f"{name}.json").read_text())
    return record


def parts(out: Path) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in read(out, "session")["parts"]}


def test_without_a_gpu_it_says_so_and_ends_with_125(tmp_path: Path) -> None:
    out = tmp_path / "results"
    environ = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": str(tmp_path)}
    words = ["sh", str(SCRIPT), "--out", str(out)]
    done = subprocess.run(
        words, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 125, done.stderr
    (said,) = done.stderr.splitlines()
    assert said.startswith("no lane on a GPU can run here: no CUDA device (NVML: ")
    assert not (out / "session.json").exists()


def test_the_marked_tests_pass_on_a_made_up_gpu_and_none_is_skipped(box: Any) -> None:
    status, out, said = asked(box, "--seconds", "1000", "--only", "tests")
    found = read(out, "tests")["tests"]
    states = {one["name"]: one["state"] for one in found}
    assert set(states.values()) == {"passed"}, [o for o in found if o["state"] != "passed"]
    assert (status, parts(out)["tests"]["ok"]) == (0, True), said
    assert len(states) > 10


def test_cases_and_benchmark_leave_small_files_that_become_a_page(box: Any) -> None:
    words = ["--seconds", "1000", "--only", "benchmark", "--only", "cases"]
    words += ["--case", "draft-length-gate", "--rounds", "1"]
    status, out, said = asked(box, *words)
    assert sum(path.stat().st_size for path in out.iterdir()) < 1 << 20
    became = parts(out)
    assert list(became) == ["doctor", "cases", "benchmark"], said
    runs = read(out, "cases")["runs"]
    assert [one["lane"] for one in runs] == ["plain", "memcheck", "coredump", "blocking"]
    assert {one["verdict"] for one in runs} == {"REPRODUCED"}
    assert all(trial["as_expected"] for one in runs for trial in one["trials"])
    assert (status, became["cases"]["ok"], became["benchmark"]["ok"]) == (0, True, True), said
    measured = read(out, "benchmark")
    assert {one["lane"] for one in measured["rows"]} >= {"plain", "plain, one arena"}
    # the driver ends that process, so that nobody knows how long it worked
    assert "coredump, faulty" in measured["not_measured"]
    placing = measured["placing"]
    assert placing["granularity"] == 2 << 20
    assert [one["placement"] for one in placing["rows"]] == ["unmapped", "neighbour"] * 2
    assert all(one["placing"] > 0 for one in placing["rows"])
    docs = box.folder / "docs"
    page = loaded("page")
    assert page.main([str(out), str(docs)]) == 0
    (kept,) = docs.glob("*.json")
    assert kept.name.startswith("nvidia-h200-")
    text = kept.with_suffix(".md").read_text()
    for head in ("Not as it must be", "Not looked at", "Parts", "Cases", "relative to `plain`"):
        assert head in text
    assert "**All that was looked at came out as it must.**" in text
    assert str(box.folder) not in text + kept.read_text()


def test_once_the_gpu_is_lost_nothing_more_is_begun_and_it_is_said_of_each_part(box: Any) -> None:
    box.lost = True
    words = ["--only", "cases", "--only", "benchmark", "--case", "draft-length-gate"]
    status, out, said = asked(box, *words)
    became = parts(out)
    assert (status, became["cases"]["ok"], became["benchmark"]["state"]) == (1, False, "left out")
    assert "no lane on a GPU can run any more: the driver shows no" in became["benchmark"]["said"]
    assert "left out: benchmark" in said
    first, *late = read(out, "cases")["runs"]
    assert not first["said"]
    assert {one["said"] for one in late} == {became["benchmark"]["said"]}
    text = loaded("page").page(loaded("page").collected(out), "name")
    assert "in plain: the GPU was not well afterwards" in text.split("## Not looked at")[0]


def test_ended_in_the_middle_it_leaves_no_process_and_what_it_has(box: Any) -> None:
    out = box.folder / "results"
    box.more |= {"PYTHON": str(box.python), "TMPDIR": str(box.folder / "scratch")}
    (box.folder / "scratch").mkdir()
    words = ["sh", str(SCRIPT), "--out", str(out), "--only", "cases"]
    with subprocess.Popen(words, env=box.environ(), stderr=subprocess.PIPE, text=True) as script:
        trials = box.folder / "scratch"
        for _ in range(600):  # until a trial is on the device
            if of(box) and list(trials.glob("*/runs/*/*/plain/*/job.json")):
                break
            time.sleep(0.1)
        started = of(box)
        assert len(started) > 1, script.poll()
        script.send_signal(signal.SIGTERM)
        _, said = script.communicate(timeout=30)
    assert script.returncode == 128 + signal.SIGTERM
    assert "interrupted by SIGTERM" in said
    assert all(ended_soon(pid) for pid in started)
    assert read(out, "session")["ended"] == "interrupted by SIGTERM"
    assert parts(out)["doctor"]["state"] == "done"
    assert parts(out)["cases"]["state"] == "cut"
    assert not list(trials.glob("specrepro-gpu-*/"))
    assert loaded("page").main([str(out), str(box.folder / "docs")]) == 0


def of(box: Any) -> list[int]:
    """Processes that were started on this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environ = (path / "environ").read_bytes()
        except OSError:
            continue  # another user's, or it has ended
        if os.fsencode(str(box.folder)) in environ and int(path.name) != os.getpid():
            found.append(int(path.name))
    return found


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_is_the_head_of_the_script(word: str) -> None:
    done = subprocess.run(["sh", str(SCRIPT), word], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    head = SCRIPT.read_text().split("\nset -eu\n")[0].splitlines()[1:]
    assert done.stdout.splitlines() == [line.removeprefix("#").removeprefix(" ") for line in head]
    for option in ("--fetch", "--wheels", "--out", "--seconds", "--only", "Exit status"):
        assert option in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["--what"],
        ["--out"],
        ["--only", "all"],
        ["--case", "../x"],
        ["--seconds", "8m"],
        ["--light"],
    ],
)
def test_what_it_does_not_know_is_refused_and_help_named(tmp_path: Path, words: list[str]) -> None:
    command = ["sh", str(SCRIPT), *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run.sh --help" in done.stderr
    assert not list(tmp_path.iterdir())


def test_no_results_are_written_over(box: Any) -> None:
    (box.folder / "results").mkdir()
    (box.folder / "results" / "doctor.json").write_text("{}")
    status, _, said = asked(box)
    assert (status, "is not empty" in said) == (2, True)


@pytest.mark.parametrize(
    ("wheel", "whole", "said"),
    [
        ("lib-1-py3-none-any.whl", False, "lib-1-py3-none-any.whl is cut, or none"),
        ("lib-1-cp27-cp27m-any.whl", True, "is not a supported wheel on this platform"),
        (None, False, "there are none in "),
    ],
)
def test_wheels_that_cannot_be_installed_are_said_and_no_result(
    box: Any, tmp_path: Path, wheel: str | None, whole: bool, said: str
) -> None:
    (tmp_path / "wheels").mkdir()
    if wheel:
        path = tmp_path / "wheels" / wheel
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("lib.py", "")
        if not whole:
            path.write_bytes(path.read_bytes()[:-8])
    status, out, told = asked(box, "--wheels", str(tmp_path / "wheels"))
    assert status == 125
    assert "the wheels cannot be installed" in told
    assert said in told
    assert list(out.iterdir()) == []


def test_a_command_that_does_not_end_is_ended_with_all_it_started(tmp_path: Path) -> None:
    commands = loaded("commands")
    mark = tmp_path / "pid"
    words = ["sh", "-c", f'trap "" INT; sleep 300 & echo $! > {mark}; wait; sleep 300']
    done = commands.ended(words, 0.5)
    assert (done.status, done.json()) == (None, None)
    assert done.said.startswith("no end within")
    assert ended_soon(int(mark.read_text()))


def ended_soon(pid: int) -> bool:
    """Whether a process that was killed ends; as a zombie it waits for nobody but its parent."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False
