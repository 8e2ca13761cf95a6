"""A machine with a GPU made up: its driver, NVML, compute-sanitizer and kernel log, and specrepro
run on it. Kernels are executed by the emulator; what a device would end a context with does."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GPU = "gpu NVIDIA H200|GPU-{uuid}|00000000:3B:00.0"
CODE = "from specrepro.cli import main; main()"
# scripts that drive the device by themselves
SCRIPTS = [HERE.parent / "gpu" / name for name in ("first_byte.py", "placed_tensors.py")]
DRIVING = " | ".join(f"{shlex.quote(str(path))}\\ *" for path in SCRIPTS)


@dataclass
class Box:
    """A machine, and specrepro run on it.

    nvml, tool: what their fakes are told. more: of the environment. before: lines of shell before
    each process of a lane. torch: one made up over the same driver, which Triton launches with.
    lost: the GPU is gone once a trial has started.
    """

    folder: Path
    library: Path
    nvml: list[str]
    tool: dict[str, Any] = field(default_factory=lambda: {"found": ["seen"]})
    more: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    compilers: bool = False
    torch: bool = False
    lost: bool = False

    @property
    def log(self) -> Path:
        """The kernel log, where this machine's made-up driver writes one (`xid`)."""
        return self.folder / "kernel.log"

    @property
    def python(self) -> Path:
        """An interpreter of this machine."""
        return self.folder / "python"

    def xid(self, code: int | None = None, count: int = 1) -> None:
        """There is a kernel log; where a kernel ends a context the driver logs this, and a 43."""
        self.log.touch()
        self.more["SPECREPRO_KERNEL_LOG"] = str(self.log)
        if code is not None:
            self.before.append(f'export FAKE_XID="{code} {count} {self.log}"')

    def environ(self) -> dict[str, str]:
        """The environment of a command, and the files that its fakes read."""
        self.interpreter()
        script = self.folder / "nvml"
        script.write_text("\n".join(self.nvml) + "\n")
        (self.folder / "tool.json").write_text(json.dumps(self.tool))
        return os.environ | {
            "FAKE_NVML": str(script),
            "LD_LIBRARY_PATH": str(self.folder / "lib"),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "NO_COLOR": "1",
            **self.more,
        }

    def specrepro(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of specrepro, its lanes' processes on the made-up device."""
        return self.command([str(self.python), "-c", CODE, *words])

    def command(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Any command on this machine."""
        return subprocess.run(
            words, env=self.environ(), capture_output=True, text=True, timeout=1200, check=False
        )

    def run(self, *words: str) -> dict[str, Any]:
        """The record of `specrepro run`."""
        runs = str(self.folder / "runs")
        done = self.specrepro("run", *words, "--json", "--runs", runs)
        assert done.returncode in (0, 1, 125), done.stderr
        record: dict[str, Any] = json.loads(done.stdout)
        return record

    def interpreter(self) -> None:
        """The Python of the children: its driver is made up, its compilers may be missing."""
        paths = os.environ.get("PYTHONPATH", "")
        without = "" if self.compilers else "export NO_COMPILERS=1\n"
        if self.torch:
            without += "export MADE_UP_TORCH=1\n"
            without += f'export LD_LIBRARY_PATH="{self.library.parent}:$LD_LIBRARY_PATH"\n'
        if self.lost:
            without += f'case "$2" in *.device_child) : > "{self.folder / "nvml"}" ;; esac\n'
        without += "".join(f"{line}\n" for line in self.before)
        python = self.python
        wrapper = HERE / "python_with_driver.py"
        python.write_text(
            f'#!/bin/sh\nexport PYTHONPATH="{paths}"\n'
            # anything but a process that computes is an interpreter that finds this one again
            f'case "$1 $2" in "-m specrepro."* | {DRIVING}) ;; *)\n'
            f'export PYTHONPATH="{self.folder / "site"}:$PYTHONPATH"\n'
            f'exec "{sys.executable}" "$@" ;; esac\n'
            f'{without}exec "{sys.executable}" "{wrapper}" "{self.library}" "$@"\n'
        )
        python.chmod(0o755)
        site = self.folder / "site" / "sitecustomize.py"
        site.parent.mkdir(exist_ok=True)
        site.write_text(f"import sys\n\nsys.executable = {str(python)!r}\n")

    def trials(self, record: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
        """Trials of the one case at its own point, by variant and lane."""
        (case,) = record["cases"]
        return {(t["variant"], t["lane"]): t for t in case["trials"] if t["point"] == case["named"]}


def made(folder: Path, library: Path) -> Box:
    """A box in a folder. library: the made-up libcuda.so.1."""
    compiler = shutil.which("cc") or shutil.which("gcc") or "clang"
    (folder / "lib").mkdir()
    (folder / "bin").mkdir()
    nvml = HERE.parent / "watch" / "fake_nvml.c"
    target = folder / "lib" / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(target), str(nvml)], check=True, timeout=60
    )
    tool = folder / "bin" / "compute-sanitizer"
    fake = HERE.parent / "sanitizer" / "fake_tool.py"
    tool.write_text(
        f'#!/bin/sh\nFAKE_SANITIZER_FILE="{folder / "tool.json"}"\nexport FAKE_SANITIZER_FILE\n'
        f'exec "{sys.executable}" "{fake}" "$@"\n'
    )
    tool.chmod(0o755)
    # a GPU of its own: specrepro uses one for a single run at a time, whoever asks
    return Box(folder, library, [GPU.format(uuid=uuid.uuid4())])
