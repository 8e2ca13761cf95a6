"""`specrepro check` on releases of the index, on both sides of a boundary, at the depths that need
no environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.check.builds import Builds
from specrepro.repro.check.probes import load
from specrepro.repro.check.source import members
from specrepro.repro.check.source_depth import probes
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


def git(root: Path, *words: str) -> str:
    own = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    ran = subprocess.run(
        ["git", *own, "-C", str(root), *words],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.strip()


def test_git_bisect_finds_the_release_that_brought_a_defect_in_a_checkout(
    cache: Path, tmp_path: Path
) -> None:
    """A history of four releases, each with those files of its wheel that are looked at."""
    [case] = load_cases(["gdn-pipeline-state"])
    assert case.case.check is not None
    asked = probes(case.case.check.records(), case.case.check.also)
    root = tmp_path / "vllm"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    with Builds(cache=cache) as builds:
        for version in ("0.23.0", "0.24.0", "0.25.0", "0.26.0"):
            tree = builds.open(version)
            names = members(tree.names(), map(load, asked))
            tree.fetch(names)
            for name in (*names, "vllm/__init__.py"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(tree.read(name) if name in names else b"")
            tree.close()
            git(root, "add", "-A")
            git(root, "commit", "-q", "-m", f"release {version}")
            git(root, "tag", f"v{version}")
    git(root, "bisect", "start", "v0.26.0", "v0.23.0")
    code = "from specrepro.cli import main; main()"
    words = ("check", "gdn-pipeline-state", "--defect", "batch-row-copy", "--git-bisect")
    where = ("--vllm", ".", "--depth", "source", "--runs", str(tmp_path / "runs"))
    told = git(root, "bisect", "run", sys.executable, "-c", code, *words, *where)
    assert f"{git(root, 'rev-parse', 'v0.25.0')} is the first" in told
    assert git(root, "log", "-1", "--format=%s", "refs/bisect/bad") == "release 0.25.0"
