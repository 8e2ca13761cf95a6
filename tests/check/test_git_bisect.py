"""`git bisect run specrepro check … --git-bisect --vllm .`, on a checkout of which each commit is a
release."""

from __future__ import annotations

import os
import shutil
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

pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]

CASE, DEFECT = "draft-length-gate", "dict-override"
# The defect is there from 0.14.0 on. A commit after it cannot be looked at, and is skipped.
RELEASES = ("0.12.0", "0.13.0", "0.14.0", "0.15.0", "0.16.0")
BROKEN_AFTER = "0.14.0"
SPECULATIVE = "vllm/config/speculative.py"


def git(repository: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    people = {
        f"GIT_{who}_{what}": text
        for who in ("AUTHOR", "COMMITTER")
        for what, text in (("NAME", "a test"), ("EMAIL", "test@example.invalid"))
    }
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    ended = subprocess.run(
        ["git", "-C", str(repository), *words],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment | people | alone,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def commit(repository: Path, name: str) -> None:
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", name)
    git(repository, "tag", name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with what the case looks at, a commit a release."""
    root = tmp_path / "checkout"
    root.mkdir()
    git(root, "init", "--quiet")
    [loaded] = load_cases([CASE])
    part = loaded.case.check
    assert part is not None
    asked = [load(name) for name in probes(part.records(), part.also)]
    with Builds(cache=tmp_path / "cache") as builds:
        for release in RELEASES:
            try:
                tree = builds.open(release)
            except UntestableError as error:
                pytest.skip(f"no package index here: {error}")
            wanted = [*members(tree.names(), asked), "vllm/__init__.py"]
            tree.fetch(wanted)
            shutil.rmtree(root / "vllm", ignore_errors=True)
            for name in wanted:
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tree.read(name))
            commit(root, release)
            if release == BROKEN_AFTER:
                (root / SPECULATIVE).write_text("what is this\n", encoding="utf-8")
                commit(root, "broken")
    return root


def test_the_first_commit_with_the_defect_is_found(repository: Path, tmp_path: Path) -> None:
    git(repository, "bisect", "start", RELEASES[-1], RELEASES[0])
    code = "from specrepro.cli import main; main()"
    question = ("check", CASE, "--git-bisect", "--vllm", ".", "--depth", "source")
    narrowed = ("--defect", DEFECT, "--runs", str(tmp_path / "runs"))
    said = git(repository, "bisect", "run", sys.executable, "-c", code, *question, *narrowed)
    first = git(repository, "rev-parse", "0.14.0").strip()
    assert f"{first} is the first bad commit" in said
    assert git(repository, "rev-parse", "refs/bisect/bad").strip() == first


def test_a_commit_that_cannot_be_looked_at_is_skipped(repository: Path, tmp_path: Path) -> None:
    git(repository, "checkout", "--quiet", "broken")
    code = "from specrepro.cli import main; main()"
    ended = subprocess.run(
        [
            *(sys.executable, "-c", code, "check", CASE, "--git-bisect", "--vllm", "."),
            *("--defect", DEFECT, "--runs", str(tmp_path / "runs")),
        ],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 125, ended.stdout + ended.stderr
    assert "UNTESTABLE" in ended.stdout
