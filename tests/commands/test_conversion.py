"""Plain arguments are passed on without pydantic; what needs converting still is, and refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CODE = """
import json, sys
sys.argv = ["specrepro", *json.loads(sys.argv[1])]
from specrepro.cli import main
status = None
try:
    main()
except SystemExit as ended:
    status = ended.code
print(json.dumps([status, "pydantic" in sys.modules]), file=sys.stderr)
"""


def loads_pydantic(folder: Path, *arguments: str) -> tuple[int, bool]:
    ran = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    status, loaded = json.loads(ran.stderr.splitlines()[-1])
    return status, loaded


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "xid", "31"),
        ("diagnose", "crash.log", "-q", "--format", "page"),
        ("diagnose", "crash.log", "--json", "--runs", "kept"),
    ],
)
def test_texts_and_switches_need_no_pydantic(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "crash.log").write_text("CUDA error: an illegal memory access was encountered\n")
    assert loads_pydantic(tmp_path, *arguments) == (0, False)
    assert (tmp_path / "kept").is_dir() is ("kept" in arguments)


def test_a_number_and_a_path_are_converted(specrepro: Callable[..., Any], tmp_path: Path) -> None:
    ran = specrepro("runs", "prune", "--keep", "3", "--runs", tmp_path / "none")
    assert ran.returncode == 0


@pytest.mark.parametrize("value", ["-1", "three", ""])
def test_a_number_out_of_bounds_or_none_at_all_is_refused(
    value: str, specrepro: Callable[..., Any]
) -> None:
    ran = specrepro("runs", "prune", "--keep", value)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--keep" in ran.stderr


def test_a_choice_is_one_of_its_words(specrepro: Callable[..., Any]) -> None:
    assert specrepro("--color", "sometimes", "list").returncode == 2
    assert specrepro("--color", "never", "list").returncode == 0


def test_an_argument_that_is_required_must_be_given(specrepro: Callable[..., Any]) -> None:
    ran = specrepro("new")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--from" in ran.stderr


def test_every_command_and_group_answers_by_its_name(specrepro: Callable[..., Any]) -> None:
    said = specrepro("--help").stdout.splitlines()
    rows = said[said.index("Commands:") + 1 :] if "Commands:" in said else said
    names = [row.split()[0] for row in rows if row.startswith("  ") and row.split()]
    assert {"run", "runs", "list", "diagnose"} <= set(names)
    for name in ("runs", "list", "diagnose"):
        assert specrepro(name, "--help").returncode == 0
    wrong = specrepro("diagnosis")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "diagnosis" in wrong.stderr
