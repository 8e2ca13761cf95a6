"""The wheel holds what the tree holds, and installs one name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SHIPPED = ("repro/", "kernels/", "cases/")
TOP = {"__init__.py", "cli.py", "py.typed"}


def test_every_tracked_file_that_should_ship_is_in_the_wheel_byte_for_byte(
    root: Path, tracked: list[str], wheel: dict[str, bytes]
) -> None:
    shipped = [name for name in tracked if name.startswith(SHIPPED) or name in TOP]
    assert len(shipped) > len(TOP)
    wrong = [name for name in shipped if wheel.get(f"specrepro/{name}") != read(root, name)]
    assert wrong == []


def test_the_wheel_holds_no_module_that_is_not_in_the_tree(
    tracked: list[str], wheel: dict[str, bytes]
) -> None:
    inside = {name.removeprefix("specrepro/") for name in wheel if name.startswith("specrepro/")}
    assert inside - set(tracked) == set()


def test_nothing_is_installed_under_a_generic_name(
    project: dict[str, Any], wheel: dict[str, bytes]
) -> None:
    version = project["project"]["version"]
    assert {name.split("/")[0] for name in wheel} == {
        "specrepro",
        f"specrepro-{version}.dist-info",
    }


def test_the_only_command_installed_is_specrepro_and_the_only_plugin_is_of_pytest(
    project: dict[str, Any], wheel: dict[str, bytes]
) -> None:
    version = project["project"]["version"]
    entry_points = wheel[f"specrepro-{version}.dist-info/entry_points.txt"].decode()
    commands, plugins = entry_points.split("[pytest11]")
    assert commands.split() == ["[console_scripts]", "specrepro", "=", "specrepro.cli:main"]
    assert plugins.split() == ["specrepro", "=", "specrepro.repro.pytest_plugin"]


def read(root: Path, name: str) -> bytes:
    return (root / name).read_bytes()
