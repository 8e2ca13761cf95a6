"""Where the tool is found, in every layout it is shipped in, and what is said where it is not."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from specrepro.repro.errors import LaneError
from specrepro.repro.sanitizer.options import CHECKS, Files, command, free_port
from specrepro.repro.sanitizer.tool import Tool, find

from .conftest import put

EMPTY = {"PATH": ""}


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_on_path_before_cuda_home_before_a_wheel(tmp_path: Path) -> None:
    on_path = put(tmp_path / "bin" / "compute-sanitizer")
    home = put(tmp_path / "cuda" / "bin" / "compute-sanitizer")
    wheel = put(tmp_path / "nvidia" / "cu13" / "compute-sanitizer" / "compute-sanitizer")
    environ = {"PATH": str(on_path.parent), "CUDA_HOME": str(tmp_path / "cuda")}
    packages = [tmp_path / "nvidia"]
    assert find(environ, tmp_path, packages) == Tool((str(on_path),), "2026.4.0.0", "on PATH")
    assert find(environ | EMPTY, tmp_path, packages).command == (str(home),)
    assert find(EMPTY, tmp_path, packages) == Tool(
        (str(wheel), "--injection-path", str(wheel.parent)), "2026.4.0.0", "its wheel"
    )


def test_a_toolkit_may_keep_it_in_a_folder_of_its_own(tmp_path: Path) -> None:
    inner = put(tmp_path / "compute-sanitizer" / "compute-sanitizer")
    assert find(EMPTY | {"CUDA_PATH": str(tmp_path)}, tmp_path, []).command == (str(inner),)


def test_the_wheel_for_cuda_12_has_no_executable_bit_and_its_libraries_elsewhere(
    tmp_path: Path,
) -> None:
    root = tmp_path / "nvidia" / "cuda_sanitizer_api"
    binary = put(root / "bin" / "compute-sanitizer", 0o644)
    (root / "lib").mkdir()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = find(EMPTY, scratch, [tmp_path / "nvidia"])
    copy = scratch / "compute-sanitizer"
    assert found.command == (str(copy), "--injection-path", str(root / "lib"))
    assert (copy.read_bytes(), binary.stat().st_mode & 0o777) == (binary.read_bytes(), 0o644)


def test_one_that_does_not_answer_is_passed_over_for_the_next(tmp_path: Path) -> None:
    broken = script(tmp_path / "bin" / "compute-sanitizer", "exit 13")
    home = put(tmp_path / "cuda" / "bin" / "compute-sanitizer")
    environ = {"PATH": str(broken.parent), "CUDA_HOME": str(tmp_path / "cuda")}
    assert find(environ, tmp_path, []).command == (str(home),)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("exit 13", "says no version (status 13)"),
        ("echo Version 2022.4.1.0", "version 2022.4.1.0 is older than 2023.3"),
        ("exec /nonexistent/tool", "says no version (status 127)"),
    ],
)
def test_why_one_cannot_be_used_is_said(tmp_path: Path, body: str, why: str) -> None:
    path = script(tmp_path / "bin" / "compute-sanitizer", body)
    with pytest.raises(LaneError, match="no usable compute-sanitizer") as error:
        find({"PATH": str(path.parent)}, tmp_path, [])
    assert why in error.value.message
    assert "extra `gpu`" in (error.value.hint or "")


def test_none_at_all_is_said() -> None:
    with pytest.raises(LaneError, match="on PATH, in CUDA_HOME or in a wheel"):
        find(EMPTY, Path(), [])


@pytest.mark.parametrize("check", CHECKS)
def test_every_option_that_decides_is_said(tmp_path: Path, check: str) -> None:
    words = command(
        Tool(("cs", "--injection-path", "/lib x"), "2026.4", "on PATH"),
        check,
        Files.of(tmp_path),
        ["python", "-m", "child"],
        50000,
    )
    assert words[:5] == ["cs", "--injection-path", "/lib x", "--tool", check]
    assert words[-3:] == ["python", "-m", "child"]
    pairs = dict(itertools.pairwise(words))
    assert (pairs["--print-limit"], pairs["--port"], pairs["--destroy-on-device-error"]) == (
        "0",
        "50000",
        "context",
    )
    assert ("--report-api-errors" in words) == (check == "memcheck")


def test_a_check_the_tool_has_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no check"):
        command(Tool(("cs",), "2026.4", ""), "fastcheck", Files.of(tmp_path), [], 50000)


def test_trials_have_ports_of_their_own() -> None:
    ports = {free_port(number) for number in range(20)}
    assert len(ports) == 20
    assert all(49152 <= port <= 65525 for port in ports)
    assert min(abs(a - b) for a in ports for b in ports if a != b) >= 10
