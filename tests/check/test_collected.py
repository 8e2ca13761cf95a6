"""`collect_env`, asked of a Python: the engine's own, torch's, none, and those that go wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specrepro.repro.check.environments.collected import MOST, Collected, collect, python_of

SAYS = "print('Collecting environment information...')\nprint('{} here')\n"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of a virtual environment without a package."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def install(python: Path, module: str, text: str) -> None:
    [site] = python.parent.parent.glob("lib/python3*/site-packages")
    file = site.joinpath(*module.split(".")).with_suffix(".py")
    file.parent.mkdir(parents=True, exist_ok=True)
    for folder in [file.parent, *file.parent.parents]:
        if folder == site:
            break
        (folder / "__init__.py").touch()
    file.write_text(text)


def test_the_engines_own_is_asked_before_torchs(python: Path) -> None:
    install(python, "torch.utils.collect_env", SAYS.format("torch"))
    said = collect(python, os.environ)
    assert (said.by, said.reason) == ("torch.utils.collect_env", "")
    install(python, "vllm.collect_env", SAYS.format("vllm"))
    said = collect(python, os.environ)
    assert said == Collected(
        "vllm.collect_env", "Collecting environment information...\nvllm here", 0, ""
    )


def test_torchs_is_asked_where_the_engines_own_fails(python: Path) -> None:
    install(python, "torch.utils.collect_env", SAYS.format("torch"))
    install(python, "vllm.collect_env", "print('half')\nimport not_installed\n")
    said = collect(python, os.environ)
    assert said.by == "torch.utils.collect_env"
    assert "half" not in said.output
    assert said.reason == "vLLM's own failed: ModuleNotFoundError: No module named 'not_installed'"


def test_a_python_without_either_says_so(python: Path) -> None:
    said = collect(python, os.environ)
    assert said == Collected(reason="neither vLLM's collect_env nor torch's is there")


def test_a_variable_of_the_caller_lends_no_package(python: Path, tmp_path: Path) -> None:
    (tmp_path / "torch" / "utils").mkdir(parents=True)
    (tmp_path / "torch" / "utils" / "collect_env.py").write_text(SAYS.format("planted"))
    said = collect(python, {**os.environ, "PYTHONPATH": str(tmp_path)})
    assert said.output == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise SystemExit(7)", "exit status 7"),
        ("import os\nos.kill(os.getpid(), 9)", "exit status -9"),
        ("raise ValueError('\\x1b[31mno')", "exit status 1: ValueError: \\x1b[31mno"),
        ("import time\ntime.sleep(60)", "no end within 2 s"),
        ("", "exit status 0"),
    ],
)
def test_one_that_goes_wrong_is_a_reason(python: Path, text: str, reason: str) -> None:
    install(python, "torch.utils.collect_env", text)
    assert collect(python, os.environ, seconds=2.0) == Collected(reason=reason)


def test_a_python_that_cannot_be_started_is_a_reason(tmp_path: Path) -> None:
    said = collect(tmp_path / "nowhere", os.environ)
    assert said.output == ""
    assert "cannot be started" in said.reason


def test_an_endless_output_is_cut_in_its_middle(python: Path) -> None:
    install(python, "vllm.collect_env", "print('first')\nprint('x' * 500_000)\nprint('last')\n")
    said = collect(python, os.environ)
    assert said.output.startswith("first\n")
    assert said.output.endswith("\nlast")
    assert said.left_out == len("first\n") + 500_000 + len("\nlast") - MOST
    assert len(said.output) < MOST + 100


def test_what_it_starts_ends_with_it(python: Path, tmp_path: Path) -> None:
    left = tmp_path / "left"
    child = f"import time; time.sleep(3); open({str(left)!r}, 'w')"
    start = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])\n"
    install(python, "vllm.collect_env", f"{start}print('said')\n")
    assert collect(python, os.environ).output == "said"
    subprocess.run(["sleep", "4"], check=True)
    assert not left.exists()


def script(path: Path, first: str) -> Path:
    path.write_text(f"{first}\nprint(1)\n")
    path.chmod(0o755)
    return path


def test_the_python_of_a_script_is_named_in_its_first_line(python: Path, tmp_path: Path) -> None:
    path = {"PATH": str(python.parent)}
    for first in (
        f"#!{python}",
        f"#! {python} -I",
        "#!/usr/bin/env python",
        "#!/usr/bin/env -S LANG=C python -u",
        f"#!/bin/sh\n'''exec' '{python}' \"$0\" \"$@\"\n' '''",
        f"#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''",
    ):
        assert python_of([str(script(tmp_path / "tool", first)), "serve"], path) == python
    assert python_of(["python", "-m", "vllm"], path) == python
    assert python_of([str(python)], {}) == python


def test_of_what_is_no_script_of_python_none_is_known(tmp_path: Path) -> None:
    for first in ("#!/bin/sh", "#!", "#!/usr/bin/env", "\x7fELF", "#!/nowhere/python3"):
        assert python_of([str(script(tmp_path / "tool", first))], dict(os.environ)) is None
    assert python_of(["no-such-command"], dict(os.environ)) is None
    assert python_of([], dict(os.environ)) is None
