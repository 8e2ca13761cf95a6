"""The root is the package `specrepro`: the folders, the list in pyproject.toml, the versions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import specrepro


def test_the_listed_packages_are_the_folders_that_ship(
    project: dict[str, Any], tracked: list[str]
) -> None:
    folders = {
        PurePosixPath(name).parent
        for name in tracked
        if name.startswith(("repro/", "kernels/", "cases/"))
    }
    # PTX is data of its kernel's package, the template of a page of the reports'
    folders = {folder for folder in folders if folder.name not in ("ptx", "page")}
    expected = {"specrepro", "specrepro.kernels"} | {
        ".".join(("specrepro", *folder.parts)) for folder in folders
    }
    listed = project["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(expected)


def test_the_root_holds_no_module_but_the_package_itself(tracked: list[str]) -> None:
    modules = {name for name in tracked if "/" not in name and name.endswith((".py", ".pyi"))}
    assert modules == {"__init__.py", "cli.py"}


def test_folders_that_could_shadow_another_package_are_no_packages(tracked: list[str]) -> None:
    # a regular package later on sys.path beats a folder without __init__.py
    bare = ("kernels/", "cases/", "tests/", "docs/")
    found = [name for name in tracked if name.startswith(bare) and name.endswith("__init__.py")]
    assert found == []


def test_the_checkout_does_not_shadow_hugging_face_kernels(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "kernels"
    other.mkdir()
    (other / "__init__.py").write_text("NAME = 'another package'\n", encoding="utf-8")
    code = "import sys; sys.path.append(sys.argv[1]); import kernels; print(kernels.NAME)"
    found = subprocess.check_output(
        [sys.executable, "-c", code, str(tmp_path)], cwd=root, text=True
    )
    assert found == "another package\n"


def test_every_folder_of_modules_in_repro_is_a_package(tracked: list[str]) -> None:
    modules = [PurePosixPath(name) for name in tracked if name.startswith("repro/")]
    folders = {path.parent for path in modules if path.suffix == ".py"}
    missing = [str(folder) for folder in folders if str(folder / "__init__.py") not in tracked]
    assert missing == []


def test_the_version_is_said_the_same_everywhere(project: dict[str, Any]) -> None:
    assert specrepro.__version__ == project["project"]["version"]


def test_shipped_ptx_was_made_by_the_pinned_compilers(root: Path) -> None:
    pins = {
        name: version
        for line in (root / "tests/constraints.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
        for name, _, version in [line.partition("==")]
    }
    package = {"triton": "triton", "nvrtc": "nvidia-cuda-nvrtc"}
    manifests = sorted((root / "kernels").glob("*/ptx/manifest.json"))
    assert manifests
    for path in manifests:
        compiler = json.loads(path.read_text(encoding="utf-8"))["compiler"]
        assert pins[package[compiler["name"]]] == compiler["version"], path.parts[-3]
