"""`specrepro diagnose`, `explain` and `new` as a shell sees them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro import store
from specrepro.repro.case import load_case
from specrepro.repro.diagnose.rules import load

CORPUS = Path(__file__).parent / "corpus"
CLEAN = CORPUS / "plan-buffer-race" / "clean.log"
KERNEL = CORPUS / "plan-buffer-race" / "clean.dmesg.log"
CODE = "import sys; from specrepro.cli import main; main()"
Run = Callable[..., "subprocess.CompletedProcess[str]"]
REPLAYED = [one for one in load().classes if one.case]


@pytest.fixture
def specrepro(tmp_path: Path) -> Run:
    def run(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", CODE, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            input=stdin,
            env=os.environ
            | {"XDG_STATE_HOME": str(tmp_path / "state"), "COLUMNS": "120", "PYTHONUTF8": "1"},
        )

    return run


def record(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found["schema"] == "specrepro/diagnose@1"
    return found


def test_the_record_has_what_others_rely_on(specrepro: Run) -> None:
    ran = specrepro("diagnose", CLEAN, KERNEL, "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    found = record(ran)
    keys = {"sources", "engine", "first_failure", "cascade", "classes", "missing", "experiments"}
    assert keys | {"incidents", "run", "environment"} <= found.keys()
    assert len(found["classes"]) == 22
    for one in found["classes"]:
        assert one["standing"] in ("likely", "possible", "excluded", "unknown")
        assert isinstance(one["for"], list)
        assert isinstance(one["against"], list)
    best = found["classes"][0]
    assert (best["id"], best["standing"]) == ("plan-buffer-race", "likely")
    names = {source["name"] for source in found["sources"]}
    for row in [*best["for"], found["first_failure"]]:
        for line in row["lines"]:
            assert line["source"] in names
            assert line["line"] >= 1
    read = next(row for row in best["for"] if "READ" in row["text"])
    assert read["lines"][0] == {"source": str(KERNEL), "at": "clean.dmesg.log", "line": 1}


def test_the_page_says_the_record_and_is_stored(specrepro: Run) -> None:
    ran = specrepro("diagnose", CLEAN, KERNEL)
    assert (ran.returncode, ran.stderr) == (0, "")
    for word in ("FIRST", "THEN", "BESIDE", "likely", "possible", "excluded", "missing", "next"):
        assert f"\n{word}" in ran.stdout
    assert "asynchronous" in ran.stdout
    assert "Not evidence" in ran.stdout
    again = specrepro("runs", "show", "latest")
    assert again.stdout == ran.stdout
    assert specrepro("runs", "show", "--json").stdout.count("specrepro/diagnose@1") == 1


def test_commands_are_whole_lines_that_can_be_pasted(specrepro: Run, tmp_path: Path) -> None:
    command = "vllm serve Qwen/Qwen3.6-27B-FP8 --tensor-parallel-size 2 --max-num-seqs 8 " + (
        "--served-model-name a-name-that-makes-this-longer-than-any-terminal-is-wide " * 2
    )
    page = tmp_path / "issue.md"
    log = CLEAN.read_text(encoding="utf-8")
    page.write_text(f"It dies.\n\n```\n{command}\n```\n\n```\n{log}```\n", encoding="utf-8")
    found = record(specrepro("diagnose", page, KERNEL, "--json"))
    commands = [row["command"] for row in found["experiments"] if row["command"]]
    assert 0 < len(found["experiments"]) <= 3
    assert any("--served-model-name" in one for one in commands)
    lines = [line.strip() for line in specrepro("diagnose", page, KERNEL).stdout.splitlines()]
    said = specrepro("diagnose", page, KERNEL, "--format", "markdown").stdout
    for one in commands:
        assert one in lines
        assert f"\n```sh\n{one}\n```" in said


def test_a_log_may_be_packed_or_come_through_a_pipe(specrepro: Run, tmp_path: Path) -> None:
    packed = tmp_path / "crash.log.gz"
    packed.write_bytes(gzip.compress(CLEAN.read_bytes()))
    one = record(specrepro("diagnose", packed, "--json"))
    other = record(specrepro("diagnose", "-", "--json", stdin=CLEAN.read_text(encoding="utf-8")))
    for found in (one, other):
        assert found["first_failure"]["what"] == "CUDA error: illegal memory access"
        assert found["first_failure"]["tie"] is True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("diagnose",), "no log is named"),
        (("diagnose", "nowhere.log"), "nowhere.log"),
        (("diagnose", "latest"), "specrepro watch"),
        (("diagnose", "--explain", "plan-buffer-rase"), "plan-buffer-race"),
        (("diagnose", "x", "--format", "html"), "markdown"),
        (("explain", "weather", "1"), "xid, error, line, class"),
        (("explain", "xid", "thirty"), "no number"),
        (("explain", "error", "cudaErrorIlegalAddress"), "cudaErrorIllegalAddress"),
        (("new", "--from", "nowhere.log"), "nowhere.log"),
    ],
)
def test_what_cannot_be_understood_ends_with_2_and_leaves_stdout_empty(
    arguments: tuple[str, ...], said: str, specrepro: Run
) -> None:
    ran = specrepro(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_latest_is_what_was_watched_last(specrepro: Run, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for log in (CORPUS / "hang" / "clean.log", CLEAN):
        path = store.create(runs, "watch", {"words": ["vllm"]})
        (path / "output.log").write_bytes(log.read_bytes())
        (path / "kernel.log").write_bytes(KERNEL.read_bytes())
        store.write_json(path / store.RESULT, {"schema": "specrepro/watch@1"})
        os.utime(path)
    # a later run of another kind is not what was watched
    store.create(runs, "zz-run", {})
    found = record(specrepro("diagnose", "latest", "--runs", runs, "--json"))
    assert {Path(source["name"]).name for source in found["sources"]} == {
        "output.log",
        "kernel.log",
    }
    newest = max(p.name for p in runs.iterdir() if "watch" in p.name)
    assert all(newest in source["name"] for source in found["sources"])


def test_a_log_without_a_failure_ends_with_125(specrepro: Run, tmp_path: Path) -> None:
    quiet = tmp_path / "quiet.log"
    quiet.write_text("INFO 09-01 10:00:00 [a.py:1] all is well\n", encoding="utf-8")
    ran = specrepro("diagnose", quiet)
    assert ran.returncode == 125
    assert "no failure found" in ran.stdout
    (tmp_path / "empty.log").write_bytes(b"")
    empty = specrepro("diagnose", tmp_path / "empty.log")
    assert empty.returncode == 125
    assert "nothing could be read" in empty.stdout
    (tmp_path / "noise.log").write_bytes(bytes(range(256)) * 50)
    assert specrepro("diagnose", tmp_path / "noise.log").returncode == 125


HOSTILE = (
    "(Worker_TP0 pid=1) ERROR 09-01 10:00:00 [a.py:1] torch.AcceleratorError: CUDA error: an "
    "illegal memory access was encountered \x1b]0;owned\x07\x1b[2J [red]x[/red] "
    "![x](https://evil.example) <script>alert(1)</script> @someone `code`\u202e\n"
    "(Worker_TP0 pid=1) ERROR 09-01 10:00:00 [a.py:1] ValueError: <img src=x> @all | # | \x9b31m\n"
)


@pytest.mark.parametrize("more", [(), ("--format", "markdown"), ("--json",), ("-q",), ("-v",)])
def test_nothing_of_a_log_acts_on_a_terminal_or_an_issue(
    more: tuple[str, ...], specrepro: Run, tmp_path: Path
) -> None:
    log = tmp_path / "hostile.log"
    log.write_text(HOSTILE, encoding="utf-8")
    ran = specrepro("diagnose", log, *more)
    assert ran.returncode == 0
    for character in "\x1b\x07\x9b\u202e":
        assert character not in ran.stdout
    if more == ("--format", "markdown"):
        prose = ran.stdout
        assert "<script" not in prose
        assert "![x]" not in prose
        assert "@someone" not in prose
        assert "@all" not in prose


def test_a_folder_is_counted_by_what_the_incidents_have_in_common(
    specrepro: Run, tmp_path: Path
) -> None:
    night = tmp_path / "night"
    night.mkdir()
    for n in range(3):
        (night / f"a{n}.log").write_bytes(CLEAN.read_bytes())
    hardware = CORPUS / "hardware-or-driver" / "cut.log"
    (night / "b.log").write_bytes(hardware.read_bytes())
    (night / "quiet.log").write_text("nothing\n", encoding="utf-8")
    (night / "other.json").write_text("{}", encoding="utf-8")
    (night / ".hidden.log").write_bytes(hardware.read_bytes())
    (night / "link.log").symlink_to(hardware)
    ran = specrepro("diagnose", night, "--json", "--jobs", "1")
    assert ran.returncode == 0
    found = record(ran)
    assert (found["logs"], found["quiet"]) == (5, 1)
    counts = [(row["count"], row["first_failure"]["kind"]) for row in found["incidents"]]
    assert counts == [(3, "cuda_error"), (1, "xid")]
    first = found["incidents"][0]
    assert (first["first_seen"], first["last_seen"]) == ("09-01 10:30:52", "09-01 10:30:52")
    assert len(first["sources"]) == 3
    page = specrepro("diagnose", night)
    assert "4 incidents of 2 kinds; nothing wrong in 1 log\n" in page.stdout


def test_a_name_that_acts_on_a_terminal_is_written_as_an_escape(
    specrepro: Run, tmp_path: Path
) -> None:
    night = tmp_path / "night"
    night.mkdir()
    (night / "a.log").write_text("nothing\n", encoding="utf-8")
    (night / "b\x1b[2J\n.log").write_bytes(CLEAN.read_bytes())
    found = record(specrepro("diagnose", night, "--json"))
    assert found["incidents"][0]["sources"] == [f"{night}/b\\x1b[2J\\n.log"]
    assert found["first_failure"]["what"] == "CUDA error: illegal memory access"
    assert "\x1b" not in specrepro("diagnose", night).stdout


def test_processes_find_what_one_finds(specrepro: Run, tmp_path: Path) -> None:
    night = tmp_path / "night"
    night.mkdir()
    for n in range(40):
        (night / f"{n:02}.log").write_bytes(CLEAN.read_bytes())
    one, two = (
        record(specrepro("diagnose", night, "--json", "--jobs", jobs))["incidents"]
        for jobs in ("1", "2")
    )
    assert one == two
    assert one[0]["count"] == 40


@pytest.mark.parametrize("one", REPLAYED, ids=[one.id for one in REPLAYED])
def test_a_skeleton_of_every_class_that_can_be_replayed_is_a_valid_case(
    one: Any, specrepro: Run, tmp_path: Path
) -> None:
    ran = specrepro("new", "--from", CLEAN, "--class", one.id, "--id", "mine")
    assert (ran.returncode, ran.stderr) == (0, "")
    path = tmp_path / "mine.yaml"
    path.write_text(ran.stdout, encoding="utf-8")
    case = load_case(path).case
    assert (case.id, case.fault_class) == ("mine", one.id)
    if one.id in ("plan-buffer-race", "draft-length-gate"):
        assert case.params["num_speculative_tokens"] == 4  # as the log has it


def test_a_skeleton_can_be_run(specrepro: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(specrepro("new", "--from", CLEAN).stdout, encoding="utf-8")
    ran = specrepro("run", path, "--lane", "reference", "--json")
    assert ran.returncode in (0, 125)  # a lane without kernels reproduces nothing
    [case] = json.loads(ran.stdout)["cases"]
    trials = [t for t in case["trials"] if t["lane"] == "reference" and t["expected"] != "unknown"]
    assert trials
    assert all(trial["status"] == trial["expected"] for trial in trials)


def test_a_class_without_a_scenario_has_no_skeleton(specrepro: Run) -> None:
    ran = specrepro("new", "--from", CORPUS / "hang" / "clean.log")
    assert (ran.returncode, ran.stdout) == (125, "")
    assert "plan-buffer-race" in ran.stderr


def test_explain_says_what_a_code_or_line_means(specrepro: Run) -> None:
    assert "page fault" in specrepro("explain", "xid", "31").stdout
    assert "nothing is known" in specrepro("explain", "xid", "9999").stdout
    assert "cudaErrorIllegalAddress" in specrepro("explain", "error", "700").stdout
    told = specrepro("explain", "line", "torch.cuda.OutOfMemoryError: CUDA out of memory.").stdout
    assert "out of memory" in told
    told = specrepro("explain", "line", "leaked semaphore objects to clean up at shutdown").stdout
    assert "not evidence" in told
    assert specrepro("explain", "line", "nothing special").stdout == "nothing that is known here\n"
    assert specrepro("explain", "class", "C19").stdout.startswith("# hang\n")
    assert specrepro("diagnose", "--explain", "hang").stdout.startswith("# hang\n")
    parsed = json.loads(specrepro("explain", "xid", "79", "--json").stdout)
    assert (parsed["schema"], parsed["class"]) == ("specrepro/explain@1", "hardware")
