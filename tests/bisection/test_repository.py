"""Commits between releases, as a clone has them: a small history with a release branch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from specrepro.repro.bisection.commits import End, between
from specrepro.repro.bisection.repository import Repository
from specrepro.repro.errors import UntestableError, UsageError


class Clone:
    """A repository that a test writes: `main` with tags, and branches off it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        who = {f"GIT_{role}_{what}": "nobody@host.invalid" for role in ("AUTHOR", "COMMITTER")
               for what in ("NAME", "EMAIL")}  # fmt: skip
        told = subprocess.run(
            ["git", "-C", str(self.root), *arguments],
            env=os.environ | who | {"GIT_CONFIG_GLOBAL": os.devnull},
            check=True,
            capture_output=True,
            text=True,
        )
        return told.stdout.strip()

    def commit(self, subject: str, **files: str) -> str:
        for name, text in files.items():
            path = self.root / "vllm" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "engine")


def test_commits_come_oldest_first_with_the_files_they_change(clone: Clone) -> None:
    first = clone.commit("begin", draft="1")
    second = clone.commit("docs (#2)", notes="a")
    third = clone.commit("draft \x1b[31m (#3)", draft="2", gate="1")
    found = Repository(clone.root).between(first, third)
    assert [commit.sha for commit in found] == [second, third]
    assert [commit.paths for commit in found] == [
        ("vllm/notes.py",),
        ("vllm/draft.py", "vllm/gate.py"),
    ]
    assert found[0].subject == "docs (#2)"


def test_a_release_of_a_branch_is_reached_over_the_main_line_and_its_own_commits(
    clone: Clone,
) -> None:
    clone.commit("begin", draft="1")
    root = clone.commit("before the branch", draft="2")
    clone.git("checkout", "-q", "-b", "releases/1")
    clone.commit("picked for 1", draft="picked")
    clone.git("tag", "v1.0")
    clone.git("checkout", "-q", "main")
    main = clone.commit("on main", draft="3")
    idle = clone.commit("touches nothing of it", notes="b")
    clone.git("checkout", "-q", "-b", "releases/2")
    picked = clone.commit("picked for 2", draft="4")
    clone.git("tag", "-a", "v2.0", "-m", "2.0")
    repository = Repository(clone.root)
    line = between(
        repository,
        End("1.0", None),
        End("2.0", picked[:9]),
        relevant=lambda paths: [path for path in paths if "draft" in path],
    )
    assert line.builds == (root, main, picked)
    assert line.left_out == (
        "of 3 commits 1 change no file that is looked at",
        "1 commits of the branch of 1.0 are on another line",
    )
    every = between(repository, End("1.0", None), End("2.0", None))
    assert every.builds == (root, main, idle, picked)
    assert [repository.on_main(sha) for sha in (main, picked)] == [True, False]


def test_files_of_a_commit_are_read_without_checking_it_out(clone: Clone) -> None:
    old = clone.commit("old", draft="old")
    clone.commit("new", draft="new", other="x")
    (clone.root / "vllm" / "draft.py").write_text("edited")
    tree = Repository(clone.root).tree(old, "vllm")
    assert list(tree.names()) == ["vllm/draft.py"]
    assert tree.read("vllm/draft.py") == b"old"
    assert tree.build.commit == old
    with pytest.raises(KeyError):
        tree.read("vllm/other.py")


def test_links_and_programs_of_a_strangers_clone_are_not_followed(
    clone: Clone, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    old = clone.commit("old", draft="1")
    (clone.root / "vllm" / "link.py").symlink_to(tmp_path / "secret")
    (clone.root / ".gitattributes").write_text("*.py diff=theirs filter=theirs\n")
    new = clone.commit("new", draft="2")
    for key in ("core.fsmonitor", "diff.external", "diff.theirs.textconv", "gpg.program",
                "filter.theirs.smudge", "core.pager", "core.sshCommand"):  # fmt: skip
        clone.git("config", key, str(program))
    clone.git("config", "log.showSignature", "true")
    repository = Repository(clone.root)
    assert [commit.sha for commit in repository.between(old, new)] == [new]
    assert list(repository.tree(new, "vllm").names()) == ["vllm/draft.py"]
    assert not ran.exists()


def test_names_that_are_options_or_ranges_are_not_given_to_git(clone: Clone) -> None:
    clone.commit("only", draft="1")
    for name in ("--output=x", "HEAD..HEAD", "a b", "", "HEAD^{/x}"):
        with pytest.raises(UntestableError, match="does not hold"):
            Repository(clone.root).commit(name)


def test_a_shallow_clone_and_a_folder_without_git_are_refused(clone: Clone, tmp_path: Path) -> None:
    clone.commit("one", draft="1")
    clone.commit("two", draft="2")
    shallow = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", clone.root.as_uri(), str(shallow)], check=True
    )
    with pytest.raises(UsageError, match="shallow"):
        Repository(shallow)
    with pytest.raises(UsageError, match="no clone"):
        Repository(tmp_path / "nothing")
