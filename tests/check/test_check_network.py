"""`specrepro check` on releases of the index, on both sides of a boundary, at the depths that need
no environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specrepro.repro.check.builds import Builds
from specrepro.repro.errors import UntestableError

pytestmark = pytest.mark.network

BOUNDARIES = {
    ("draft-length-gate", "callable-override"): ("0.24.0", "0.25.0"),
    ("stale-draft-metadata", "built-once-eager"): ("0.20.2", "0.21.0"),
    ("mtp-plan-buffer-race", "engine-buffers"): ("0.28.0", "0.29.0"),
    ("gdn-pipeline-state", "batch-row-copy"): ("0.31.0", "0.32.0"),
    ("gdn-pipeline-state", "zero-draft-rows"): ("0.31.0", "0.32.0"),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that the tests of this file share, empty at first."""
    folder = tmp_path_factory.mktemp("cache")
    with Builds(cache=folder) as builds:
        try:
            builds.versions("0.28.0")
        except UntestableError as error:
            pytest.skip(f"no package index here: {error}")
    return folder


def checked(*words: str, cache: Path, runs: Path) -> tuple[int, list[str]]:
    """(status, verdict of each build)."""
    code = "from specrepro.cli import main; main()"
    where = ("--cache", str(cache), "--runs", str(runs), "--json")
    ran = subprocess.run(
        [sys.executable, "-c", code, "check", *words, *where],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"NO_COLOR": "1"},
    )
    assert ran.stdout, ran.stderr
    return ran.returncode, [build["verdict"] for build in json.loads(ran.stdout)["builds"]]


@pytest.mark.parametrize(("case", "defect"), list(BOUNDARIES), ids="_".join)
def test_the_last_release_with_a_defect_and_the_first_without_are_told_apart(
    case: str, defect: str, cache: Path, tmp_path: Path
) -> None:
    last, first = BOUNDARIES[case, defect]
    asked = (case, "--defect", defect, "--vllm", f"{last},{first}")
    said = checked(*asked, cache=cache, runs=tmp_path)
    assert said == (1, ["AFFECTED", "NOT AFFECTED"])
    # what was read once answers without the index
    asked = (case, "--defect", defect, "--vllm", first, "--offline")
    again = checked(*asked, cache=cache, runs=tmp_path)
    assert again == (0, ["NOT AFFECTED"])


@pytest.mark.compilers
def test_the_kernels_of_both_releases_say_the_same(cache: Path, tmp_path: Path) -> None:
    asked = ("gdn-pipeline-state", "--defect", "batch-row-copy", "--depth", "kernel")
    said = checked(*asked, "--vllm", "0.31.0,0.32.0", cache=cache, runs=tmp_path)
    assert said == (1, ["AFFECTED", "NOT AFFECTED"])
