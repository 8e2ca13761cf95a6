"""What a command of specrepro loads, as a fresh interpreter sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from specrepro.cli import COMMANDS

HEAVY = {"numpy", "pydantic", "pydantic_core", "yaml", "pynvml", "torch", "triton"}
CODE = """
import json, sys
from specrepro import cli
sys.argv = ["specrepro", *json.loads(sys.argv[1])]
status = None
try:
    cli.main()
except SystemExit as ended:
    status = ended.code
print(json.dumps([status, sorted(name for name in sys.modules if "." not in name)]))
"""


def loaded(folder: Path, *arguments: str) -> tuple[int, set[str]]:
    """Exit status and top-level modules of one command, run as its own process."""
    out = subprocess.check_output(
        [sys.executable, "-c", CODE, json.dumps(arguments)], cwd=folder, text=True
    )
    status, modules = json.loads(out.splitlines()[-1])
    return status, set(modules)


def test_the_version_and_a_help_load_neither_numpy_nor_pydantic_nor_rich(tmp_path: Path) -> None:
    for asked in (("--version",), ("check", "--help"), ("--help",)):
        status, modules = loaded(tmp_path, *asked)
        assert status == 0
        assert "specrepro" in modules
        assert modules & (HEAVY | {"rich"}) == set(), asked


def test_a_diagnosis_as_json_loads_no_rich_and_a_page_does(tmp_path: Path) -> None:
    (tmp_path / "crash.log").write_text("CUDA error: an illegal memory access was encountered\n")
    arguments = ("diagnose", "crash.log", "--runs", "kept")
    status, modules = loaded(tmp_path, *arguments, "--json")
    assert (status, modules & (HEAVY | {"rich"})) == (0, set())
    status, modules = loaded(tmp_path, *arguments)
    assert (status, modules & (HEAVY | {"rich"})) == (0, {"rich"})


def test_listing_cases_loads_no_numpy(tmp_path: Path) -> None:
    status, modules = loaded(tmp_path, "list", "--json")
    assert status == 0
    assert "pydantic" in modules
    assert modules & {"numpy", "torch", "triton"} == set()


def test_the_process_that_runs_cases_loads_no_numpy(root: Path, tmp_path: Path) -> None:
    cases, runs = str(root / "cases"), str(tmp_path / "runs")
    arguments = ("run", cases, "--lane", "reference", "--json", "--runs", runs)
    status, modules = loaded(tmp_path, *arguments)
    # one lane that executes no kernel cannot reproduce anything
    assert status == 125
    assert modules & {"numpy", "torch", "triton"} == set()


def test_a_command_loads_no_other_command(tmp_path: Path) -> None:
    code = CODE.replace('if "." not in name', 'if ".commands." in name')
    ran = [sys.executable, "-c", code, json.dumps(("runs", "list", "--runs", str(tmp_path)))]
    status, modules = json.loads(subprocess.check_output(ran, text=True).splitlines()[-1])
    assert status == 0
    names = {name.rpartition(".")[2] for name in modules}
    others = {where.partition(":")[0] for where in COMMANDS.values()} - {"runs"}
    assert "runs" in names
    assert names & others == set()


def test_a_shell_completes_commands_and_options_of_one_that_is_not_loaded(tmp_path: Path) -> None:
    def completed(typed: str) -> str:
        shell = {"_SPECREPRO_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": typed}
        ran = [sys.executable, "-c", CODE, "[]"]
        done = subprocess.run(ran, env={**os.environ, **shell}, capture_output=True, text=True)
        return done.stdout

    said = completed("specrepro ")
    assert [name for name in COMMANDS if f'"{name}"' not in said] == []
    assert '"prune"' in completed("specrepro runs p")
    assert '"--explain"' in completed("specrepro diagnose --e")
