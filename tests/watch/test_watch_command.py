"""`specrepro watch` on machines made up: what is seen, what could not be, what passes through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FAULT = (
    "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_2 faulted @ "
    "0x7ec9_34000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)
NVML, KERNEL = "NVML", "kernel log"


def append(line: str) -> str:
    """Shell text that logs a line."""
    return f"echo '{line}' >> \"$LOG\""


def test_a_healthy_machine_is_quiet_and_says_that_it_was_watched(machine: Any) -> None:
    done, record = machine.watched("exit 0")
    assert done.returncode == 0
    assert record["incidents"] == []
    assert {one["source"]: one["observable"] for one in record["watched"]} == {
        NVML: True,
        KERNEL: True,
    }
    assert "no Xid was seen" in done.stderr


def test_a_page_fault_told_by_both_and_its_consequences_are_one_incident(
    machine: Any, xid: Callable[..., str]
) -> None:
    machine.lines.append("xid 200 0 43")  # NVML often tells the consequence only
    script = f"sleep 0.2; {append(xid(31, FAULT))}; {append(xid(45, 'Ch 00000008'))}; exit 1"
    done, record = machine.watched(script)
    [incident] = record["incidents"]
    assert done.returncode == 1
    assert incident["code"] == 31
    assert incident["counts"] == {"31": 1, "43": 1, "45": 1}
    assert set(incident["sources"]) == {NVML, KERNEL}
    assert (incident["bus"], incident["pid"]) == ("0000:3b:00", 4211)
    assert incident["process"] == "python"
    assert incident["message"]["address"] == "0x7ec934000000"
    assert incident["message"]["access"] == "READ"
    assert incident["action"] == "RESTART_APP"


def test_a_storm_of_thirteens_is_one_incident(machine: Any, xid: Callable[..., str]) -> None:
    body = "Graphics SM Warp Exception on (GPC 0, TPC 0, SM 0): Out Of Range Address"
    script = f"for i in $(seq 50); do {append(xid(13, body))}; done"
    _, record = machine.watched(script)
    [incident] = record["incidents"]
    assert incident["counts"] == {"13": 50}


def test_two_gpus_that_fault_at_once_are_two_incidents(
    machine: Any, xid: Callable[..., str]
) -> None:
    script = f"{append(xid(31, FAULT))}; {append(xid(31, FAULT, bus='0000:86:00', pid=4300))}"
    _, record = machine.watched(script)
    assert [one["bus"] for one in record["incidents"]] == ["0000:3b:00", "0000:86:00"]


def test_a_lost_gpu_is_evidence_and_the_end_of_what_nvml_can_tell(machine: Any) -> None:
    machine.lines.append("lose 100")
    done, record = machine.watched("sleep 0.6")
    [incident] = record["incidents"]
    assert (incident["code"], incident["class"]) == (79, "hardware")
    assert {one["source"]: one["observable"] for one in record["watched"]}[NVML] is False
    assert "a GPU was lost" in done.stderr


def test_a_code_that_nobody_knows_is_kept(machine: Any) -> None:
    machine.lines.append("xid 50 0 9999")
    _, record = machine.watched("sleep 0.3")
    [incident] = record["incidents"]
    assert (incident["code"], incident["class"]) == (9999, None)
    assert incident["action"] == "unknown code"


def test_a_mig_instance_is_named(machine: Any) -> None:
    machine.lines += ["mig 0", "xid 50 0 43"]
    done, record = machine.watched("sleep 0.3")
    assert record["incidents"][0]["instance"] == [3, 0]
    assert "MIG instance 3" in done.stderr


def test_what_the_driver_itself_asks_for_comes_before_the_catalog(
    machine: Any, xid: Callable[..., str]
) -> None:
    state = "[ 13.0] NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed to reset"
    _, record = machine.watched(f"{append(xid(31, FAULT))}; {append(state)}")
    [incident] = record["incidents"]
    assert incident["code"] == 31
    assert incident["action"] == "GPU recovery action changed to reset"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("fail nvmlInit_v2 9", "Driver Not Loaded"),
        ("fail nvmlDeviceRegisterEvents 3", "Not Supported"),
        ("fail nvmlEventSetCreate 4", "Insufficient Permissions"),
        ("fail nvmlDeviceGetSupportedEventTypes 999", "Unknown Error"),
        ("fail nvmlEventSetWait_v2 4", "Insufficient Permissions"),
    ],
)
def test_every_failure_of_nvml_makes_it_unobservable_and_is_said(
    machine: Any, line: str, said: str
) -> None:
    machine.lines.append(line)
    done, record = machine.watched("sleep 0.3; exit 5")
    assert done.returncode == 5
    [nvml] = [one for one in record["watched"] if one["source"] == NVML]
    assert (nvml["observable"], said in nvml["reason"]) == (False, True)
    assert said in done.stderr


def test_without_any_source_nothing_is_claimed(machine: Any, tmp_path: Path) -> None:
    machine.lines.append("fail nvmlInit_v2 9")
    done = machine.specrepro(
        "watch", "--runs", tmp_path / "r", "--kernel-log", tmp_path / "none", "--", "true"
    )
    assert done.returncode == 0
    assert "nothing could be seen" in done.stderr
    assert "no Xid was seen" not in done.stderr
    live = machine.specrepro("watch", "--kernel-log", tmp_path / "none", "--for", "0")
    assert live.returncode == 125


def test_output_status_and_log_of_the_command_pass_through(machine: Any) -> None:
    done, record = machine.watched("echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert done.stderr.startswith("err\n")
    kept = Path(record["log"]["path"]).read_text()
    assert sorted(kept.splitlines()) == ["err", "out"]
    assert record["log"]["bytes"] == len(kept)


def test_a_signal_reaches_the_command_and_its_status_comes_back(
    machine: Any, tmp_path: Path
) -> None:
    machine.log.touch()
    script = 'trap "echo got; exit 3" TERM; echo ready; while :; do sleep 0.05; done'
    options = ["--runs", str(tmp_path / "r"), "--kernel-log", str(machine.log), "--linger", "0"]
    code = "import sys; from specrepro.cli import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, "watch", *options, "--", "sh", "-c", script],
        env=machine.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.stdout.read() == "got\n"
        assert child.wait(20) == 3


def test_a_command_that_a_signal_ended_has_the_status_a_shell_gives(machine: Any) -> None:
    done, record = machine.watched("kill -SEGV $$")
    assert done.returncode == record["status"] == 128 + signal.SIGSEGV


def test_a_command_that_does_not_exist_is_said(machine: Any, tmp_path: Path) -> None:
    done = machine.specrepro("watch", "--runs", tmp_path, "--linger", "0", "--", "no-such-program")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot start `no-such-program`" in done.stderr


def test_no_secret_of_the_environment_is_stored(machine: Any, tmp_path: Path) -> None:
    machine.log.touch()
    environ = {"VLLM_API_KEY": "hidden-1", "HF_TOKEN": "hidden-2", "VLLM_USE_V1": "1"}
    runs = tmp_path / "r"
    machine.specrepro(
        "watch", "--runs", runs, "--kernel-log", machine.log, "--linger", "0", "--", "true",
        env=environ,
    )  # fmt: skip
    stored = (runs / "latest" / "run.json").read_text()
    assert "hidden" not in stored
    assert json.loads(stored)["variables"]["VLLM_USE_V1"] == "1"


def test_live_incidents_are_lines_of_json(machine: Any, xid: Callable[..., str]) -> None:
    machine.log.touch()
    code = "import sys; from specrepro.cli import main; main()"
    words = ["watch", "--json", "--kernel-log", str(machine.log), "--for", "3", "--linger", "0"]
    child = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=machine.environ(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        first = json.loads(child.stdout.readline())
        assert [one["observable"] for one in first["watched"]] == [True, True]
        with machine.log.open("a") as log:
            log.write(xid(31, FAULT) + "\n")
        incident = json.loads(child.stdout.readline())
        assert incident["code"] == 31
        assert child.wait(20) == 0


def test_the_record_is_shown_again_and_the_gpu_is_in_it(machine: Any) -> None:
    machine.lines += ["process 0 77 512", "recovery 0 1"]
    _, record = machine.watched("true")
    [gpu] = record["gpus"]["after"]["gpus"]
    assert gpu["name"] == "NVIDIA H200"
    assert gpu["bus"] == "0000:3b:00"
    assert gpu["recovery"] == "reset the GPU"
    assert gpu["processes"] == [{"pid": 77, "memory": 512 << 20}]
    shown = machine.specrepro("runs", "show", "latest", "--runs", machine.folder / "runs")
    assert shown.returncode == 0
    assert shown.stdout.startswith("watched   sh -c true   status 0")


def test_a_log_that_is_a_pipe_is_followed_from_its_beginning(
    machine: Any, tmp_path: Path, xid: Callable[..., str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    os.write(writer, (xid(31, FAULT) + "\n").encode())
    runs = tmp_path / "r"
    machine.specrepro(
        "watch", "--runs", runs, "--kernel-log", pipe, "--linger", "0", "--", "sleep", "0.5"
    )
    os.close(writer)
    record = json.loads((runs / "latest" / "run.json").read_text())
    assert [one["code"] for one in record["incidents"]] == [31]


def test_diagnose_reads_the_output_and_the_kernel_log_of_the_run_kept_last(
    machine: Any, xid: Callable[..., str]
) -> None:
    machine.watched(f"echo 'CUDA error: an illegal memory access'; {append(xid(31, FAULT))}")
    done = machine.specrepro("diagnose", "latest", "--runs", machine.folder / "runs", "--json")
    said = json.loads(done.stdout)
    names = {Path(source["name"]).name for source in said["sources"]}
    assert names == {"output.log", "kernel.log"}


def test_what_is_logged_last_is_seen_without_any_waiting(
    machine: Any, xid: Callable[..., str]
) -> None:
    _, record = machine.watched(append(xid(31, FAULT)), "--linger", "0")
    assert [one["code"] for one in record["incidents"]] == [31]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('mv "$LOG" "$LOG.1"; echo new > "$LOG"', "another file has taken its place"),
        ('rm "$LOG"', "the file has gone"),
        ('seq 9 >> "$LOG"; sleep 0.5; : > "$LOG"', "the file was cut"),
    ],
)
def test_a_log_that_is_rotated_is_not_called_observed(machine: Any, script: str, said: str) -> None:
    _, record = machine.watched(f"{script}; sleep 0.3")
    [log] = [one for one in record["watched"] if one["source"] == KERNEL]
    assert log["observable"] is False
    assert said in log["reason"]


def test_output_that_nobody_takes_does_not_hold_the_command_up(
    machine: Any, tmp_path: Path
) -> None:
    machine.log.touch()
    code = "import sys; from specrepro.cli import main; main()"
    options = ["--runs", str(tmp_path / "r"), "--kernel-log", str(machine.log), "--linger", "0"]
    script = "head -c 1000000 /dev/zero; exit 5"
    with Path("/dev/full").open("wb") as full:  # every write to it fails: the disk is full
        done = subprocess.run(
            [sys.executable, "-c", code, "watch", *options, "--", "sh", "-c", script],
            env=machine.environ(),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    record = json.loads((tmp_path / "r" / "latest" / "run.json").read_text())
    assert record["status"] == 5
    assert record["log"] == record["log"] | {"bytes": 1_000_000, "cut": False}
    assert b"Traceback" not in done.stderr


def test_a_child_that_is_left_behind_makes_the_log_an_incomplete_one(machine: Any) -> None:
    done, record = machine.watched("echo begun; sleep 6 & exit 4")
    assert (done.returncode, record["log"]["cut"]) == (4, True)
    assert "not all of the output is in it" in done.stderr


@pytest.mark.parametrize(
    "words", [["--linger", "30", "--", "sh", "-c", "echo ready; exit 3"], ["--json"]]
)
def test_an_interrupt_loses_nothing_that_was_seen(
    machine: Any, tmp_path: Path, xid: Callable[..., str], words: list[str]
) -> None:
    machine.log.touch()
    code = "import sys; from specrepro.cli import main; main()"
    options = ["--runs", str(tmp_path / "r"), "--kernel-log", str(machine.log)]
    child = subprocess.Popen(
        [sys.executable, "-c", code, "watch", *options, *words],
        env=machine.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline()
        with machine.log.open("a") as log:
            log.write(xid(31, FAULT) + "\n")
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        out, status = child.stdout.read(), child.wait(20)
    if "--json" in words:
        assert (json.loads(out.splitlines()[0])["code"], status) == (31, 130)
    else:
        record = json.loads((tmp_path / "r" / "latest" / "run.json").read_text())
        assert ([one["code"] for one in record["incidents"]], status) == ([31], 3)


@pytest.mark.parametrize("status", [0, 1])
def test_the_environment_of_a_command_that_failed_is_asked_of_its_own_python(
    machine: Any, tmp_path: Path, status: int
) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    [site] = environment.glob("lib/python3*/site-packages")
    module = site / "torch" / "utils" / "collect_env.py"
    module.parent.mkdir(parents=True)
    module.write_text("print('PyTorch version: 2.13.0')\n")
    tool = environment / "bin" / "serve"
    tool.write_text(f"#!{environment}/bin/python\nraise SystemExit({status})\n")
    tool.chmod(0o755)
    machine.specrepro("watch", "--linger", "0", "--runs", tmp_path / "runs", "--", tool)
    record = json.loads((tmp_path / "runs" / "latest" / "run.json").read_text())
    found = record["collect_env"]
    assert record["status"] == status
    if status:
        assert (found["by"], found["output"]) == (
            "torch.utils.collect_env",
            "PyTorch version: 2.13.0",
        )
    else:
        assert (found["by"], found["output"]) == ("", "")
        assert "--collect-env" in found["reason"]


def test_which_python_runs_a_shell_is_not_guessed(machine: Any) -> None:
    _, record = machine.watched("exit 3")
    assert record["collect_env"]["reason"] == "which Python runs the command is not known"
