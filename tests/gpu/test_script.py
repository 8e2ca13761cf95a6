"""The script for a machine with a GPU: on one made up, part by part, and where there is none."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent
SCRIPT = HERE / "run.sh"


def loaded(name: str) -> ModuleType:
    """A script of this folder; they find each other by their folder."""
    sys.path.insert(0, str(HERE))
    try:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(HERE))
        for other in ("page", "session", "commands", "compact"):  # names that others have too
            sys.modules.pop(other, None)
    return module


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
    assert "no lane on a GPU can run here: " in done.stderr
    assert not (out / "session.json").exists()


def test_the_marked_tests_pass_on_a_made_up_gpu_and_none_is_skipped(box: Any) -> None:
    status, out, said = asked(box, "--seconds", "1000", "--only", "tests")
    found = read(out, "tests")["tests"]
    states = {one["name"]: one["state"] for one in found}
    assert set(states.values()) == {"passed"}, [o for o in found if o["state"] != "passed"]
    assert (status, parts(out)["tests"]["ok"]) == (0, True), said
    assert len(states) > 10


def test_cases_and_benchmark_leave_small_files_that_become_a_page(box: Any) -> None:
    words = ["--seconds", "100", "--only", "benchmark", "--only", "cases"]
    _, out, said = asked(box, *words)
    assert sum(path.stat().st_size for path in out.iterdir()) < 1 << 20
    became = parts(out)
    assert set(became) == {"doctor", "benchmark", "cases"}, said
    runs = read(out, "cases")["runs"]
    assert {one["lane"] for one in runs} >= {"plain", "memcheck", "coredump", "racecheck"}
    # what did not fit is named, and is not called well
    cut = [one for one in runs if one["said"]]
    assert bool(cut) == (became["cases"]["state"] == "cut")
    ran = [one for one in runs if not one["said"]]
    assert all(trial["as_expected"] for one in ran for trial in one["trials"])
    docs = box.folder / "docs"
    page = loaded("page")
    assert page.main([str(out), str(docs)]) == 0
    (kept,) = docs.glob("*.json")
    assert kept.name.startswith("nvidia-h200-")
    text = kept.with_suffix(".md").read_text()
    for head in ("Not as it must be", "Parts", "Cases", "relative to `plain`"):
        assert head in text
    assert str(box.folder) not in text + kept.read_text()


def test_no_results_are_written_over(box: Any) -> None:
    (box.folder / "results").mkdir()
    (box.folder / "results" / "doctor.json").write_text("{}")
    status, _, said = asked(box)
    assert (status, "is not empty" in said) == (2, True)


def test_wheels_that_cannot_be_installed_are_said_and_no_result(box: Any, tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "broken-1-py3-none-any.whl").write_text("no wheel")
    status, out, said = asked(box, "--wheels", str(tmp_path / "wheels"))
    assert status == 125
    assert "the wheels cannot be installed" in said
    assert list(out.iterdir()) == []


SESSION = {
    "schema": "specrepro/gpu-session@1",
    "started": "2026-11-30T08:00:00Z",
    "limit": 460,
    "machine": {
        "device": "Card | <b>1</b>",
        "driver": "580, CUDA 13.0",
        "python": "3.12",
        "packages": {"numpy": "2.4", "triton": None},
    },
    "parts": [
        {"name": "doctor", "state": "done", "ok": True, "seconds": 1, "limit": 20, "said": ""},
        {
            "name": "cases",
            "state": "cut",
            "ok": True,
            "seconds": 9,
            "limit": 9,
            "said": "not run: x in memcheck",
        },
    ],
}
CASES = {
    "runs": [
        {
            "case": "x",
            "lane": "plain",
            "said": "",
            "verdict": "NOT REPRODUCED",
            "trials": [
                {
                    "variant": "fixed",
                    "point": {},
                    "expected": "clean",
                    "status": "fault",
                    "as_expected": False,
                    "agrees": False,
                    "reason": "error | 700",
                }
            ],
        },
        {"case": "x", "lane": "memcheck", "said": "the time was over", "trials": []},
    ]
}


def written(folder: Path) -> Path:
    for name, record in (("session", SESSION), ("cases", CASES)):
        (folder / f"{name}.json").write_text(json.dumps(record))
    return folder


def test_a_page_begins_with_what_is_not_as_it_must_be_and_escapes_what_it_is_told(
    tmp_path: Path,
) -> None:
    page = loaded("page")
    session = page.collected(written(tmp_path))
    assert page.name_of(session) == "card-b-1-b-2026-11-30"
    text = page.page(session, "name")
    amiss = text.split("## Parts")[0]
    assert "x, fixed in plain: fault, expected clean; error \\| 700" in amiss
    assert "part `cases`: cut. not run: x in memcheck" in amiss
    assert "<b>" not in text
    assert "| fixed | fault ✗ | – |" in text
    assert "memcheck the time was over" in text


@pytest.mark.parametrize("broken", ["{", "[]", "{}"])
def test_results_that_are_none_are_refused(tmp_path: Path, broken: str) -> None:
    (tmp_path / "session.json").write_text(broken)
    assert loaded("page").main([str(tmp_path), str(tmp_path / "docs")]) == 2
    assert not (tmp_path / "docs").exists()


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
