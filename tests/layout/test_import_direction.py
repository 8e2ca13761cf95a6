"""Imports point one way, and heavy packages stay in the processes that need them.

The tables of `rooms.toml` are the rule: a module that has no room, and an import that its room does
not name, fail. Imports inside functions and under TYPE_CHECKING count: a direction is a matter of
knowledge, not of when something is loaded.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from specrepro.cli import COMMANDS
from specrepro.repro.scenarios.registry import SCENARIOS

TABLES = tomllib.loads((Path(__file__).parent / "rooms.toml").read_text(encoding="utf-8"))
ROOMS: dict[str, str] = TABLES["rooms"]
KNOWS: dict[str, set[str]] = {name: set(others) for name, others in TABLES["knows"].items()}
PACKAGES: dict[str, set[str]] = {name: set(them) for name, them in TABLES["packages"].items()}

HEAVY = {"numpy", "pydantic", "pydantic_core", "torch", "triton", "pynvml", "yaml", "scipy"}


@dataclass(frozen=True, slots=True)
class Import:
    """`name` is dotted; inside the package it is relative to the root. `line` counts from 1."""

    name: str
    inside: bool
    line: int
    at_load: bool


def imports(tree: ast.Module, path: str, modules: set[str]) -> Iterator[Import]:
    package = PurePosixPath(path).parent.parts
    for node, at_load in walk(tree, True):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, False, node.lineno, at_load)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield Import(node.module or "", False, node.lineno, at_load)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1]
            base = ".".join((*above, *(node.module or "").split("."))).strip(".")
            for alias in node.names:
                deeper = f"{base}.{alias.name}".strip(".")
                name = deeper if deeper in modules else base
                yield Import(name, True, node.lineno, at_load)


def walk(node: ast.AST, at_load: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        inner = at_load and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from ((n, False) for body in child.body for n in (body, *ast.walk(body)))
            yield from (pair for other in child.orelse for pair in walk(other, inner))
            continue
        yield child, at_load
        yield from walk(child, inner)


def room(module: str) -> str:
    if module in ROOMS:
        return ROOMS[module]
    prefixes = [p for p in ROOMS if p.endswith(".") and f"{module}.".startswith(p)]
    assert prefixes, f"{module} has no room in this table"
    return ROOMS[max(prefixes, key=len)]


@pytest.fixture(scope="module")
def found(trees: dict[str, tuple[str, ast.Module]]) -> dict[str, list[Import]]:
    return {name: list(imports(tree, path, set(trees))) for name, (path, tree) in trees.items()}


def test_every_module_has_a_room_and_every_room_a_module(found: dict[str, list[Import]]) -> None:
    assert {room(module) for module in found} == set(KNOWS) == set(ROOMS.values())


def test_every_import_inside_the_package_points_the_way_of_the_table(
    found: dict[str, list[Import]],
) -> None:
    wrong = [
        f"{module}:{line.line} ({room(module)}) imports {line.name} ({room(line.name)})"
        for module, lines in found.items()
        for line in lines
        if line.inside and room(line.name) not in {room(module), *KNOWS[room(module)]}
    ]
    assert wrong == []


def test_the_table_has_no_circle() -> None:
    def above(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " → ".join((*path, name))
        for other in KNOWS[name]:
            above(other, (*path, name))

    for name in KNOWS:
        above(name, ())


def test_inside_the_package_imports_are_relative(found: dict[str, list[Import]]) -> None:
    names = {"specrepro", "repro", "kernels", "cases", "cli"}
    wrong = [
        f"{module}:{line.line} imports {line.name}"
        for module, lines in found.items()
        for line in lines
        if not line.inside and line.name.split(".")[0] in names
    ]
    assert wrong == []


def test_every_third_party_package_is_used_in_its_rooms_only(
    found: dict[str, list[Import]],
) -> None:
    wrong = [
        f"{module}:{line.line} ({room(module)}) imports {line.name}"
        for module, lines in found.items()
        for line in lines
        if not line.inside
        and (top := line.name.split(".")[0]) not in sys.stdlib_module_names
        and top not in PACKAGES.get(room(module), set())
    ]
    assert wrong == []


def test_nothing_heavy_is_loaded_by_the_command_line_before_a_command_runs(
    found: dict[str, list[Import]],
) -> None:
    commands = {f"repro.commands.{where.partition(':')[0]}" for where in COMMANDS.values()}
    assert commands <= found.keys()
    loaded = closure(found, commands | {"cli"})
    assert heavy(found, loaded, HEAVY) == []


def test_the_process_that_starts_lanes_never_loads_what_lanes_compute_with(
    found: dict[str, list[Import]],
) -> None:
    commands = {module for module in found if room(module) == "commands"}
    lazily = {line.name for module in commands for line in found[module] if line.inside}
    # what case files may say is read from the scenarios themselves
    declared = {f"repro.scenarios{name}" for name in SCENARIOS.values()}
    loaded = closure(found, commands | lazily | declared | {"cli"})
    assert {"repro.lanes.process", *declared} <= loaded
    assert heavy(found, loaded, HEAVY - {"pydantic", "pydantic_core", "yaml"}) == []


def closure(found: dict[str, list[Import]], start: set[str]) -> set[str]:
    """The modules that are loaded when those of `start` are."""
    loaded: set[str] = set()
    queue = sorted(start)
    while queue:
        name = queue.pop()
        if name in loaded or name not in found:
            continue
        loaded.add(name)
        parents = (name.rpartition(".")[0],) if "." in name else ()
        queue += [*parents, *(i.name for i in found[name] if i.inside and i.at_load)]
    return loaded


def heavy(found: dict[str, list[Import]], loaded: set[str], packages: set[str]) -> list[str]:
    return [
        f"{module}:{line.line} imports {line.name}"
        for module in sorted(loaded)
        for line in found[module]
        if line.at_load and not line.inside and line.name.split(".")[0] in packages
    ]
