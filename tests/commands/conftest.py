"""The command line as a shell starts it, for every test of a command that runs cases."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def command_line(*arguments: str | Path) -> list[str]:
    code = "import sys; from specrepro.cli import main; main()"
    return [sys.executable, "-c", code, *map(str, arguments)]


@pytest.fixture
def command() -> Callable[..., list[str]]:
    return command_line


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NO_COLOR", "FORCE_COLOR"))}
    return kept | {"XDG_STATE_HOME": str(tmp_path / "state"), "COLUMNS": "80"}


@pytest.fixture
def specrepro(environment: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    def run(*arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command_line(*arguments),
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env=environment | more,
        )

    return run
