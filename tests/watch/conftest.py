"""Machines made up: a compiled libnvidia-ml.so.1 that follows a script, a file as kernel log."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CODE = "import sys; from specrepro.cli import main; main()"
GPU = "gpu NVIDIA H200|GPU-5ad2f0c1-0000-1111-2222-333344445555|00000000:3B:00.0"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the fake library; skips where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the fake libnvidia-ml.so.1")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("fake_nvml.c")
    target = folder / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(target), str(source)],
        check=True,
        timeout=60,
    )
    return folder


@dataclass
class Machine:
    """What a test says of a machine, and specrepro run on it."""

    folder: Path
    library: Path
    lines: list[str] = field(default_factory=lambda: [GPU])

    @property
    def log(self) -> Path:
        return self.folder / "kernel.log"

    def environ(self) -> dict[str, str]:
        script = self.folder / "nvml"
        script.write_text("\n".join(self.lines) + "\n")
        return os.environ | {
            "FAKE_NVML": str(script),
            "LD_LIBRARY_PATH": str(self.library),
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }

    def specrepro(self, *words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
        environ = self.environ() | more.pop("env", {})
        return subprocess.run(
            [sys.executable, "-c", CODE, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=60,
            env=environ,
            **more,
        )

    def watched(self, script: str, *words: str | Path) -> tuple[Any, dict[str, Any]]:
        """`specrepro watch -- sh -c SCRIPT`, in which $LOG is the kernel log; and its record."""
        self.log.touch()
        runs = self.folder / "runs"
        options = ["--runs", runs, "--kernel-log", self.log, "--linger", "1", *words]
        done = self.specrepro(
            "watch", *options, "--", "sh", "-c", script, env={"LOG": str(self.log)}
        )
        return done, json.loads((runs / "latest" / "run.json").read_text())


@pytest.fixture
def machine(tmp_path: Path, library: Path) -> Machine:
    return Machine(tmp_path, library)


@pytest.fixture
def xid() -> Callable[..., str]:
    """A line of the kernel log, as driver 580 prints it."""

    def line(code: int, body: str = "", pid: int = 4211, bus: str = "0000:3b:00") -> str:
        return f"[  12.345678] NVRM: Xid (PCI:{bus}): {code}, pid={pid}, name=python, {body}"

    return line
