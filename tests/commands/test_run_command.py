"""`specrepro run` and `runs` as a shell sees them: verdict, status, JSON, page, interrupts."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.case import load_cases

SWEEP = ["mtp-tail-overflow", "--sweep", "--variant", "faulty"]
CPU = ["--lane", "reference", "--lane", "emulator"]


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Path]:
    def edit(name: str, *changes: tuple[str, str]) -> Path:
        [loaded] = load_cases([name])
        text = loaded.path.read_text()
        for old, new in changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return path

    return edit


def accesses(trial: dict[str, Any]) -> set[tuple[Any, ...]]:
    """Launch, kind, op, tensor, step and element of everything a trial found."""
    return {
        (f["launch"], f["kind"], f["op"], f["tensor"], f["step"], element)
        for f in trial["findings"]
        for element in (range(f["elements"][0], f["elements"][1] + 1) if f["elements"] else [None])
    }


def test_all_shipped_cases_come_back_and_both_lanes_see_the_same(
    specrepro: Callable[..., Any],
) -> None:
    done = specrepro("run", "mtp-tail-overflow", "draft-length-gate", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["schema"] == "specrepro/run@1"
    assert {c["id"]: c["verdict"] for c in record["cases"]} == {
        "mtp-tail-overflow": "REPRODUCED",
        "draft-length-gate": "REPRODUCED",
    }
    for case in record["cases"]:
        by_lane: dict[str, list[dict[str, Any]]] = {}
        for trial in case["trials"]:
            by_lane.setdefault(trial["lane"], []).append(trial)
        pairs = list(zip(by_lane["reference"], by_lane["emulator"], strict=True))
        assert pairs
        for reference, emulated in pairs:
            assert accesses(reference) == accesses(emulated)
            assert reference["metrics"] == emulated["metrics"]
            assert reference["service"] == emulated["service"]
        for trial in by_lane["emulator"]:
            if trial["expected"] == "clean":
                assert trial["findings"] == []
                assert trial["service"]["finished"]
                assert trial["service"]["tokens_right"]
                assert trial["service"]["speculated"]


def test_a_fix_that_was_made_faulty_is_not_reproduced(
    specrepro: Callable[..., Any], edited: Callable[..., Path]
) -> None:
    path = edited(
        "mtp-tail-overflow", ("  fixed: {admit: all_drafts}", "  fixed: {admit: one_token}")
    )
    done = specrepro("run", path, *CPU, "--json")
    assert done.returncode == 1
    [case] = json.loads(done.stdout)["cases"]
    assert case["verdict"] == "NOT REPRODUCED"
    assert any("fixed" in reason and "expected clean" in reason for reason in case["reasons"])


def test_an_expected_element_moved_by_one_is_not_reproduced(
    specrepro: Callable[..., Any], edited: Callable[..., Path]
) -> None:
    path = edited(
        "mtp-tail-overflow",
        ("tensor: key_cache, first_element: 1024", "tensor: key_cache, first_element: 1025"),
    )
    done = specrepro("run", path, *CPU, "--variant", "faulty")
    assert done.returncode == 1
    assert "first_element 1025" in done.stdout


def test_a_child_that_runs_out_of_time_is_inconclusive(specrepro: Callable[..., Any]) -> None:
    done = specrepro("run", "mtp-tail-overflow", *CPU, "--timeout", "0.1")
    assert done.returncode == 125
    assert "INCONCLUSIVE" in done.stdout
    assert "no end within 0.1 s" in re.sub(r"\s+", " ", done.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "no case is named"),
        (["run", "mtp-tail-overflow", "--variant", "fixd"], "did you mean `fixed`?"),
        (["run", "mtp-tail-overflow", "--lane", "emulatr"], "did you mean `emulator`?"),
        (["run", "mtp-tail-overflow", "--set", "seq_lne=3"], "did you mean `seq_len`?"),
        (["run", "mtp-tail-overflow", "--set", "block_size=24"], "does not divide"),
        (["run", "mtp-tail-overflow", "--set", "seed=1", "--seed", "2"], "two things"),
        (["run", "nothing-here"], "nothing-here"),
        (["run", "--resume", "nothing"], "no run begins"),
        (["run", "mtp-tail-overflow", "--resume", "x"], "--resume takes"),
        (["runs", "show", "nothing"], "no run begins"),
    ],
)
def test_bad_usage_ends_with_2_and_an_empty_stdout(
    specrepro: Callable[..., Any], arguments: list[str], said: str
) -> None:
    done = specrepro(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in re.sub(r"\s+", " ", done.stderr)
    assert "Traceback" not in done.stderr


def test_a_refused_selection_leaves_nothing_half_run(
    specrepro: Callable[..., Any], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    specrepro("run", "mtp-tail-overflow", "--variant", "nope", "--runs", runs)
    assert not runs.exists()


def test_a_stored_run_is_shown_again_and_pruned(
    specrepro: Callable[..., Any], tmp_path: Path
) -> None:
    kept = ["--runs", tmp_path / "runs"]
    done = specrepro("run", "draft-length-gate", *CPU, "--variant", "inherited", *kept)
    assert specrepro("runs", "show", "latest", *kept).stdout == done.stdout
    listed = json.loads(specrepro("runs", "list", "--json", *kept).stdout)["runs"]
    assert [run["finished"] for run in listed] == [True]
    assert "removed 1 run," in specrepro("runs", "prune", "--keep", "0", *kept).stdout
    assert json.loads(specrepro("runs", "list", "--json", *kept).stdout)["runs"] == []


def test_quiet_is_a_line_a_case(specrepro: Callable[..., Any]) -> None:
    done = specrepro("run", "draft-length-gate", *CPU, "-q")
    assert re.fullmatch(
        r"draft-length-gate   REPRODUCED · upstream cause confirmed   \d+\.\d s\n", done.stdout
    )
    assert done.stderr == ""


def test_a_page_fits_in_80_columns_and_has_no_codes_without_a_terminal(
    specrepro: Callable[..., Any],
) -> None:
    done = specrepro("run", "mtp-tail-overflow", *CPU)
    assert "\x1b" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "mtp-tail-overflow in lane emulator: 14 trials" in done.stderr


def test_escape_codes_of_a_case_file_reach_no_terminal(
    specrepro: Callable[..., Any], edited: Callable[..., Path]
) -> None:
    old = "A draft model that keeps its native length silently stops all speculation of a batch"
    path = edited("draft-length-gate", (old, '"red \\e[31m and \\u202E back"'))
    done = specrepro("run", path, *CPU, "--variant", "inherited")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout + done.stderr


def test_a_sweep_draws_the_interval(specrepro: Callable[..., Any]) -> None:
    done = specrepro(
        "run", *SWEEP, "--lane", "emulator",
        COLUMNS="120",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    rows = {
        int(found[1]): found[2].split()
        for found in re.finditer(r"num_speculative_tokens (\d+)((?:[ ]+[█·])+)", done.stdout)
    }
    # seq_len 56..64: faulty where 64 - k < seq_len <= 63
    assert rows == {
        k: ["█" if 64 - k < n <= 63 else "·" for n in range(56, 65)] for k in (3, 1, 2, 5, 8)
    }


def hear_interrupts() -> None:
    """A shell's background job starts deaf to SIGINT, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def started(
    command: Callable[..., list[str]],
    arguments: list[str],
    environment: dict[str, str],
    runs: Path,
) -> Any:
    """A run that has begun its first child."""
    process = subprocess.Popen(
        command("run", *arguments, "--runs", runs),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=hear_interrupts,
    )
    for _ in range(400):
        if list(runs.glob("*/*/emulator/result.ndjson")):
            return process
        time.sleep(0.05)
    raise AssertionError("no child started")


def children_of(runs: Path) -> list[str]:
    found = subprocess.run(
        ["pgrep", "-f", f"lanes.child {runs}"],
        capture_output=True,
        text=True,
    )
    return found.stdout.split()


def eventually_none(runs: Path) -> bool:
    for _ in range(100):
        if not children_of(runs):
            return True
        time.sleep(0.05)
    return False


def test_an_interrupt_prints_the_line_to_resume_and_leaves_nothing_running(
    command: Callable[..., list[str]],
    environment: dict[str, str],
    tmp_path: Path,
    specrepro: Callable[..., Any],
) -> None:
    runs = tmp_path / "runs"
    process = started(command, [*SWEEP, *CPU], environment, runs)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert "error: interrupted" in err
    assert eventually_none(runs)
    [line] = re.findall(r"^hint: specrepro (.*)$", err, re.MULTILINE)
    resumed = specrepro(*line.split(), "-q")
    assert resumed.returncode == 0
    assert "REPRODUCED" in resumed.stdout


def test_a_killed_run_ends_its_children_and_resumes_from_what_is_whole(
    command: Callable[..., list[str]],
    environment: dict[str, str],
    tmp_path: Path,
    specrepro: Callable[..., Any],
) -> None:
    runs = tmp_path / "runs"
    process = started(command, [*SWEEP, *CPU], environment, runs)
    whole = next(runs.iterdir()) / "mtp-tail-overflow" / "reference" / "result.ndjson"
    for _ in range(600):
        if (whole.parent / "ending.json").exists():
            break
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=30)
    assert eventually_none(runs)
    before = whole.stat().st_mtime_ns
    assert specrepro("runs", "show", "latest", "--runs", runs).returncode == 2
    [run] = [path.name for path in runs.iterdir() if not path.is_symlink()]
    resumed = specrepro("run", "--resume", run, "--runs", runs, "--json")
    assert resumed.returncode == 0
    assert json.loads(resumed.stdout)["run"]["id"] == run
    assert whole.stat().st_mtime_ns == before


def test_a_finding_taken_out_of_a_stored_result_changes_the_verdict(
    tmp_path: Path, specrepro: Callable[..., Any]
) -> None:
    runs = tmp_path / "runs"
    specrepro("run", "mtp-tail-overflow", *CPU, "--variant", "faulty", "--runs", runs)
    [run] = [path for path in runs.iterdir() if not path.is_symlink()]
    result = run / "mtp-tail-overflow" / "emulator" / "result.ndjson"
    job = result.with_name("job.json")
    code = json.loads(job.read_text())["code"]
    lines = [json.loads(line) for line in result.read_text().splitlines()]
    lines[0]["findings"] = [f for f in lines[0]["findings"] if f["op"] != "paged_attention"]
    result.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "run.json").unlink()
    resumed = specrepro("run", "--resume", run.name, "--runs", runs)
    if json.loads(job.read_text())["code"] != code:
        pytest.skip("the code was edited between the two commands, so the job was played again")
    assert resumed.returncode == 125
    assert "disagree" in resumed.stdout


def cut_off(runs: Path) -> Path:
    """The only run, as if it had been killed before it wrote its result."""
    [run] = [path for path in runs.iterdir() if not path.is_symlink()]
    (run / "run.json").unlink()
    return run


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("ending.json", '"reason": ""', '"reason": "ended by SIGSEGV"'),
        ("job.json", '"code": "', '"code": "0'),
    ],
)
def test_results_of_a_bad_end_or_of_other_code_are_not_taken_over(
    tmp_path: Path, specrepro: Callable[..., Any], file: str, old: str, new: str
) -> None:
    runs = tmp_path / "runs"
    specrepro("run", "draft-length-gate", *CPU, "--variant", "inherited", "--runs", runs)
    run = cut_off(runs)
    job = run / "draft-length-gate" / "emulator"
    text = (job / file).read_text()
    assert text.count(old) == 1
    (job / file).write_text(text.replace(old, new))
    before = (job / "result.ndjson").stat().st_mtime_ns
    specrepro("run", "--resume", run.name, "--runs", runs)
    assert (job / "result.ndjson").stat().st_mtime_ns > before


def test_a_finished_run_is_not_resumed(tmp_path: Path, specrepro: Callable[..., Any]) -> None:
    runs = tmp_path / "runs"
    specrepro("run", "draft-length-gate", *CPU, "--variant", "inherited", "--runs", runs)
    done = specrepro("run", "--resume", "latest", "--runs", runs)
    assert done.returncode == 2
    assert "is finished" in done.stderr


def test_a_run_at_work_is_neither_pruned_nor_resumed(
    command: Callable[..., list[str]],
    environment: dict[str, str],
    tmp_path: Path,
    specrepro: Callable[..., Any],
) -> None:
    runs = tmp_path / "runs"
    process = started(command, [*SWEEP, *CPU], environment, runs)
    process.send_signal(signal.SIGSTOP)  # it is at work for as long as this test looks
    [run] = list(runs.iterdir())
    pruned = specrepro("runs", "prune", "--keep", "0", "--runs", runs)
    assert "removed 0 runs" in pruned.stdout
    resumed = specrepro("run", "--resume", run.name, "--runs", runs)
    assert resumed.returncode == 2
    assert "another process" in resumed.stderr
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"--resume {run.name}" in err
