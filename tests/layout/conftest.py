"""The tree as git knows it, and the wheel that is built of it."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# what an unpacked archive has no git to leave out
GENERATED = {"__pycache__", "build", "dist"}


def listed_files(root: Path) -> list[str]:
    """Paths of the files git tracks, relative and sorted; all files where there is no git."""
    if not (root / ".git").exists():
        found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
        return sorted(
            path.as_posix()
            for path in found
            if not GENERATED.intersection(path.parts)
            and not any(part.startswith(".") or part.endswith(".egg-info") for part in path.parts)
        )
    listing = subprocess.check_output(["git", "ls-files", "-z"], cwd=root, text=True)
    return sorted(name for name in listing.split("\0") if name and (root / name).is_file())


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tracked(root: Path) -> list[str]:
    return listed_files(root)


@pytest.fixture(scope="session")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def wheel(
    root: Path, tracked: list[str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """Name → bytes of every file in a wheel built of the tracked files, without a network."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target)
    built = tmp_path_factory.mktemp("wheel")
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(built)], cwd=source, check=True, capture_output=True
    )
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def module_name(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture(scope="session")
def trees(root: Path, tracked: list[str]) -> dict[str, tuple[str, ast.Module]]:
    """Module → its path and syntax tree, for all that ships."""
    shipped = [
        name
        for name in tracked
        if name.endswith(".py") and (name.startswith(("repro/", "kernels/")) or "/" not in name)
    ]
    return {
        module_name(name): (name, ast.parse((root / name).read_text(encoding="utf-8")))
        for name in shipped
    }
