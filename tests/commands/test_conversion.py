"""Plain arguments are passed on without pydantic; what needs converting still is, and refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer import core

from specrepro import cli
from specrepro.repro.commands.conversion import NOT_PLAIN, plain

CODE = """
import json, sys
{before}
sys.argv = ["specrepro", *json.loads(sys.argv[1])]
from specrepro.cli import main
status = None
try:
    main()
except SystemExit as ended:
    status = ended.code
print(json.dumps([status, "pydantic" in sys.modules]), file=sys.stderr)
"""


def loads_pydantic(folder: Path, *arguments: str, before: str = "") -> tuple[int, bool]:
    ran = subprocess.run(
        [sys.executable, "-c", CODE.replace("{before}", before), json.dumps(arguments)],
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


# A typer that is built otherwise: the method has another name, or what it gives is asked otherwise.
RENAMED = """
from typer import core
parameter = core._TyperParameter
parameter.another_name = parameter.get_runtime_param
del parameter.get_runtime_param
def process_value(self, ctx, value):
    return self.another_name().coerce(value, param=self, ctx=ctx)
parameter.process_value = process_value
"""
ASKED_OTHERWISE = """
from typer import _coercion, core
_coercion.RuntimeParam.converted = _coercion.RuntimeParam.coerce
def process_value(self, ctx, value):
    return self.get_runtime_param().converted(value, param=self, ctx=ctx)
core._TyperParameter.process_value = process_value
"""


@pytest.mark.parametrize("before", [RENAMED, ASKED_OTHERWISE], ids=["renamed", "asked otherwise"])
def test_a_typer_that_is_built_otherwise_converts_all_by_itself(
    before: str, tmp_path: Path
) -> None:
    (tmp_path / "crash.log").write_text("CUDA error: an illegal memory access was encountered\n")
    arguments = ("diagnose", "crash.log", "--json", "--runs", "kept")
    assert loads_pydantic(tmp_path, *arguments, before=before) == (0, True)
    assert (tmp_path / "kept").is_dir()


def parameters() -> list[Any]:
    """The parameters of every command, as typer builds them."""
    found = []
    groups = [typer.main.get_command(cli.app)]
    for group in groups:
        for command in group.commands.values():
            if isinstance(command, core.TyperGroup):
                groups.append(command)
            found += command.params
    return [one for one in (*groups[0].params, *found) if hasattr(one, "type_descriptor")]


PARAMETERS = parameters()
TEXTS = st.text(max_size=12) | st.sampled_from(["1", "-1", "0.5", "true", "~/x", "auto", "a b"])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PARAMETERS), TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_a_plain_value_is_what_typer_makes_of_it(
    parameter: Any, text: str, texts: list[str]
) -> None:
    several = parameter.multiple or parameter.nargs == -1
    context = typer.Context(typer.main.get_command(cli.app))
    for value in (None, tuple(texts) if several else text, parameter.default):
        found = plain(parameter, value)
        if found is not NOT_PLAIN:
            made = parameter.get_runtime_param().coerce(value, param=parameter, ctx=context)
            assert (found, type(found)) == (made, type(made)), (parameter.name, value)


def test_a_path_with_a_zero_byte_is_left_to_typer() -> None:
    paths = [one for one in PARAMETERS if plain(one, "x") == Path("x")]
    assert paths
    assert {plain(one, "a\0b") for one in paths} == {NOT_PLAIN}


def test_most_texts_are_plain() -> None:
    kinds = {str(one.type_descriptor.annotation) for one in PARAMETERS if plain(one, "x") == "x"}
    assert kinds == {"<class 'str'>"}
