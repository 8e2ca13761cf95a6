"""`specrepro doctor` on machines made up: each thing well, missing, restricted or broken."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.doctor import Machine, examine
from specrepro.repro.watch.kernel_log import Place


def asked(machine: Any, *words: str, **environ: str) -> dict[str, dict[str, Any]]:
    """The checks by name, of the command on this machine."""
    machine.log.touch()
    done = machine.specrepro("doctor", "--json", "--kernel-log", machine.log, *words, env=environ)
    assert done.returncode in (0, 125), done.stderr
    record = json.loads(done.stdout)
    assert record["schema"] == "specrepro/doctor@1"
    assert done.returncode == (0 if record["gpu_lane"] else 125)
    return {check["name"]: check for check in record["checks"]}


def test_a_machine_with_a_gpu_shows_it_and_what_watches_it(machine: Any) -> None:
    checks = asked(machine)
    assert checks["driver"]["said"] == "580.00, CUDA 13.0"
    assert checks["GPU 0"]["said"] == "NVIDIA H200, capability 9.0, 79 of 80 GiB free"
    states = {name: checks[name]["state"] for name in ("GPU 0", "GPU 0, others", "NVML events")}
    assert set(states.values()) == {"ok"}
    assert checks["kernel log"]["state"] == "ok"


def test_a_machine_without_a_driver_says_why_and_that_none_is_needed(machine: Any) -> None:
    machine.lines = ["fail nvmlInit_v2 9"]
    checks = asked(machine)
    assert checks["driver"]["state"] == "bad"
    assert "Driver Not Loaded" in checks["driver"]["said"]
    assert "emulator need none" in checks["driver"]["hint"]
    assert checks["lanes"]["state"] == "bad"
    assert "GPU 0" not in checks


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("nvmlDeviceGetHandleByIndex_v2", "GPU 0: "),
        ("nvmlDeviceGetCount_v2", "does not tell how many"),
    ],
)
def test_a_gpu_that_is_counted_and_cannot_be_asked_is_not_absent(
    machine: Any, function: str, said: str
) -> None:
    machine.lines.append(f"fail {function} 15")
    check = asked(machine)["driver"]
    assert (check["state"], said in check["said"]) == ("bad", True), check


def test_a_lost_gpu_beside_a_well_one_is_told(machine: Any) -> None:
    machine.lines += ["gpu NVIDIA H200|GPU-5ad2f0c1|00000000:5E:00.0", "lost 1"]
    checks = asked(machine)
    assert (checks["GPU 0"]["state"], "GPU 1" in checks) == ("ok", False)
    assert checks["GPUs not told"]["state"] == "bad"
    assert checks["GPUs not told"]["said"].startswith("GPU 1: ")


def test_a_gpu_on_which_others_compute_is_told(machine: Any) -> None:
    machine.lines.append("process 0 77 512")
    check = asked(machine)["GPU 0, others"]
    assert (check["state"], check["said"]) == ("bad", "host pids 77 compute on it")


def test_a_gpu_that_the_driver_wants_reset_is_not_well(machine: Any) -> None:
    machine.lines += ["recovery 0 1", "mig 0"]
    check = asked(machine)["GPU 0"]
    assert check["state"] == "bad"
    assert "partitioned (MIG)" in check["said"]
    assert check["said"].endswith("the driver asks to reset the GPU")


def test_what_the_driver_does_not_tell_is_unknown_not_well(machine: Any) -> None:
    machine.lines.append("fail nvmlDeviceGetComputeRunningProcesses_v3 4")
    assert asked(machine)["GPU 0, others"]["state"] == "unknown"


def test_a_kernel_log_that_cannot_be_read_is_told(machine: Any, tmp_path: Path) -> None:
    done = machine.specrepro("doctor", "--json", "--kernel-log", tmp_path / "none")
    [check] = [c for c in json.loads(done.stdout)["checks"] if c["name"] == "kernel log"]
    assert check["state"] == "bad"
    assert "No such file" in check["said"]


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("name", "script", "state", "said"),
    [
        ("cuda-gdb", "echo 'NVIDIA (R) cuda-gdb'; echo 'Version 13.0'", "ok", "Version 13.0"),
        ("cuda-gdb", "exit 3", "unknown", "found, but it ends with status 3"),
        ("gh", "exit 0", "ok", "found, logged in"),
        ("gh", "exit 1", "bad", "no valid login"),
        ("compute-sanitizer", "echo 'Version 2026.4.0.0'", "ok", "2026.4.0.0 on PATH"),
        ("compute-sanitizer", "echo nonsense", "bad", "it says no version"),
    ],
)
def test_a_program_is_asked_and_its_answer_is_told(
    machine: Any, tmp_path: Path, name: str, script: str, state: str, said: str
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder, name, script)
    check = asked(machine, PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")[name]
    assert (check["state"], said in check["said"]) == (state, True), check


def machine_of(root: Path, **environ: str) -> Machine:
    return Machine({"PATH": str(root / "bin"), **environ}, Place(root / "none"), root)


def of(machine: Machine, name: str) -> Any:
    [check] = [check for check in examine(machine, "none") if check.name == name]
    return check


def test_a_program_that_hangs_is_found_and_unknown(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "cuda-gdb", "exec /bin/sleep 60")
    check = of(machine_of(tmp_path), "cuda-gdb")
    assert check.state == "unknown"
    assert "does not answer" in check.said


def test_a_token_stands_for_gh_and_is_not_shown(tmp_path: Path) -> None:
    check = of(machine_of(tmp_path, GH_TOKEN="ghp_hidden"), "gh")  # noqa: S106
    assert check.state == "ok"
    assert "hidden" not in f"{check}"


def test_a_container_is_known_by_its_mark(tmp_path: Path) -> None:
    assert of(machine_of(tmp_path), "container").said == "no sign of one"
    (tmp_path / ".dockerenv").touch()
    assert of(machine_of(tmp_path), "container").said == "inside one (docker)"


def test_ptrace_that_is_restricted_to_administrators_is_told_to_others(tmp_path: Path) -> None:
    scope = tmp_path / "proc/sys/kernel/yama"
    scope.mkdir(parents=True)
    (scope / "ptrace_scope").write_text("2\n")
    assert of(machine_of(tmp_path), "ptrace").state == ("bad" if os.geteuid() else "ok")
    (scope / "ptrace_scope").write_text("3\n")
    assert of(machine_of(tmp_path), "ptrace").state == "bad"  # to root as well
    (scope / "ptrace_scope").write_text("nonsense\n")
    assert of(machine_of(tmp_path), "ptrace").state == "unknown"


def test_a_person_sees_a_row_a_check_and_a_hint_where_there_is_something_to_do(
    machine: Any,
) -> None:
    machine.log.touch()
    done = machine.specrepro("doctor", "--kernel-log", machine.log)
    lines = done.stdout.splitlines()
    assert any(line.startswith("✓  GPU 0 ") for line in lines)
    assert all("hint:" not in line for line in lines if line.startswith("✓  GPU 0 "))
    quiet = machine.specrepro("doctor", "--kernel-log", machine.log, "-q")
    assert not any(line.startswith("✓") for line in quiet.stdout.splitlines())


def test_a_triton_whose_machine_code_the_driver_refuses_is_told(machine: Any) -> None:
    pytest.importorskip("triton", reason="Triton is not installed")
    checks = asked(machine)  # its driver has CUDA 13.0
    assert checks["triton"]["state"] == "ok"
    assert "ptxas of CUDA" in checks["triton"]["said"]
    machine.lines.append("cuda 11040")
    old = asked(machine)["triton"]
    assert (old["state"], "the driver has 11.4" in old["said"]) == ("bad", True), old


def test_without_torch_it_is_said_that_the_driver_launches(machine: Any) -> None:
    if importlib.util.find_spec("torch") is not None:
        pytest.skip("torch is installed")
    check = asked(machine)["torch"]
    assert (check["state"], "the driver launches" in check["serves"]) == ("bad", True)
