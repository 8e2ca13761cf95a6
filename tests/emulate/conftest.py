"""Kernels and argument files in a folder of their own, and the commands as a shell sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from specrepro.repro.compilation import CompilerMissingError, compiler_version
from specrepro.repro.emulation.argument_file import read_arguments
from specrepro.repro.emulation.arguments import Arguments

# c[i] = a[i] + n for i < n, without the test where it is left out.
ADD_PTX = """
.version 8.8
.target sm_80
.address_size 64
.visible .entry add(.param .u64 .ptr .global a, .param .u64 c, .param .u32 n)
{
.reg .b64 %a, %c; .reg .b32 %i, %n, %v; .reg .pred %p;
ld.param.u64 %a, [a];
ld.param.u64 %c, [c];
ld.param.u32 %n, [n];
mov.u32 %i, %tid.x;
setp.ge.u32 %p, %i, %n;
@%p ret;
mad.wide.u32 %a, %i, 4, %a;
ld.global.u32 %v, [%a];
add.u32 %v, %v, %n;
mad.wide.u32 %c, %i, 4, %c;
st.global.u32 [%c], %v;
ret;
}
"""


def need(language: str) -> None:
    try:
        compiler_version(language)
    except CompilerMissingError as error:
        pytest.skip(f"{error} is not installed")


@pytest.fixture
def triton() -> None:
    """Triton is here."""
    need("triton")


@pytest.fixture
def nvrtc() -> None:
    """NVRTC is here."""
    need("cuda")


class Folder:
    """A working folder. `command` runs specrepro there; `json` reads what it printed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        code = "from specrepro.cli import main; main()"
        environment = {k: v for k, v in os.environ.items() if k != "FORCE_COLOR"}
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=self.path,
            env=environment | {"COLUMNS": "100", "XDG_STATE_HOME": str(self.path / "state")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def json(self, *arguments: str, status: int) -> dict[str, Any]:
        done = self.command(*arguments, "--json")
        assert done.returncode == status, done.stdout + done.stderr
        record: dict[str, Any] = json.loads(done.stdout)
        return record


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def parsed(tmp_path: Path) -> Callable[[str], Arguments]:
    """An argument file of this text, called ARGS.yaml, in a folder of its own."""

    def read(text: str) -> Arguments:
        return read_arguments(tmp_path / "ARGS.yaml", textwrap.dedent(text).lstrip("\n"))

    return read


@pytest.fixture
def add_ptx() -> str:
    return ADD_PTX


@pytest.fixture(scope="session")
def kernels() -> ModuleType:
    """The module of triton_kernels.py."""
    need("triton")
    path = Path(__file__).parent / "triton_kernels.py"
    loader = SourceFileLoader(path.stem, str(path))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    loader.exec_module(module)
    return module
