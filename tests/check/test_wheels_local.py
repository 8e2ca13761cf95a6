"""Builds that lie unpacked: folders, checkouts, what is installed."""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.errors import Exit, UntestableError, UsageError

SCHEDULER = "vllm/v1/core/sched/scheduler.py"


@pytest.fixture
def unpacked(wheels: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "unpacked"
    zipfile.ZipFile(io.BytesIO(wheels.make())).extractall(folder)
    return folder


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false")
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.check_output(command, text=True, stderr=subprocess.PIPE).strip()


@pytest.fixture
def repository(unpacked: Path) -> Path:
    git(unpacked, "init", "-q")
    git(unpacked, "add", "vllm")
    git(unpacked, "commit", "-q", "-m", "first")
    git(unpacked, "tag", "v0.28.0")
    return unpacked


def test_an_unpacked_wheel_is_read_by_its_folder_or_its_package(
    wheels: Any, unpacked: Path, opened: Callable[..., Any]
) -> None:
    for path in (unpacked, unpacked / "vllm"):
        tree = opened().open(str(path))
        assert tree.names() == sorted(wheels.FILES)
        tree.fetch(tree.names())
        assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
        assert tree.find("sched/scheduler.py") == [SCHEDULER]
        build = tree.build
        assert (build.version, build.commit, build.origin) == ("0.28.0", "abc123def", "tree")
        assert tree.notes() == []


def test_a_package_in_a_src_folder_is_found(
    unpacked: Path, opened: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    unpacked.rename(tmp_path / "project" / "src")
    assert SCHEDULER in opened().open(str(tmp_path / "project")).names()


def test_a_checkout_tells_its_commit_and_which_files_are_edited(
    repository: Path, opened: Callable[..., Any]
) -> None:
    (repository / "vllm/v1/worker/runner.py").write_text("edited\n")
    (repository / "vllm/new.py").write_text("new\n")
    tree = opened().open(str(repository))
    assert tree.build.origin == "checkout"
    assert tree.build.commit == git(repository, "rev-parse", "HEAD")
    assert tree.build.version == "v0.28.0"
    tree.read(SCHEDULER)
    assert tree.notes() == []
    tree.read("vllm/v1/worker/runner.py")
    tree.read("vllm/new.py")
    assert tree.notes() == ["not as the commit has them: vllm/new.py, vllm/v1/worker/runner.py"]


def test_a_checkout_runs_no_program_that_its_configuration_names(
    repository: Path, opened: Callable[..., Any], tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "diff.external"):
        git(repository, "config", name, str(program))
    git(repository, "config", "core.hooksPath", str(tmp_path))
    (repository / ".gitattributes").write_text("*.py filter=x\n")
    tree = opened().open(str(repository))
    for name in tree.names():
        tree.read(name)
    assert tree.build.origin == "checkout"
    assert not (tmp_path / "ran").exists()


def test_a_folder_inside_another_checkout_is_not_taken_for_it(
    unpacked: Path, opened: Callable[..., Any]
) -> None:
    git(unpacked.parent, "init", "-q")
    git(unpacked.parent, "commit", "-q", "--allow-empty", "-m", "other")
    build = opened().open(str(unpacked)).build
    assert (build.origin, build.commit) == ("tree", "abc123def")


def test_links_out_of_the_tree_and_pipes_are_not_followed(
    unpacked: Path, opened: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    (unpacked / "vllm/link.py").symlink_to(tmp_path / "secret")
    (unpacked / "vllm/inner.py").symlink_to("__init__.py")
    os.mkfifo(unpacked / "vllm/pipe.py")
    tree = opened().open(str(unpacked))
    with pytest.raises(UntestableError, match="a link out of"):
        tree.read("vllm/link.py")
    with pytest.raises(UntestableError, match="no regular file"):
        tree.read("vllm/pipe.py")
    assert tree.read("vllm/inner.py") == b""
    with pytest.raises(KeyError):
        tree.read("vllm/absent.py")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "has no folder vllm"),
        (lambda path: path.write_text(""), "neither a folder nor named as a wheel"),
    ],
)
def test_a_path_without_a_build_is_refused(
    make: Callable[[Path], object], message: str, opened: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "path"
    make(path)
    with pytest.raises(UsageError, match=message) as refused:
        opened().open(str(path))
    assert refused.value.exit_status == Exit.USAGE


@pytest.fixture
def environment(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The unpacked wheel, on the path of this interpreter as an installed one is."""
    folder = unpacked / "vllm-0.28.0.dist-info"
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.28.0\n")
    monkeypatch.setattr(sys, "path", [str(unpacked), *sys.path])
    importlib.invalidate_caches()
    return unpacked


def test_what_is_installed_is_read_where_it_is(
    wheels: Any, environment: Path, opened: Callable[..., Any]
) -> None:
    tree = opened().open("installed")
    build = tree.build
    assert (build.version, build.commit, build.origin) == ("0.28.0", "abc123def", "installed")
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert tree.notes() == []


def test_a_file_edited_after_installing_is_read_as_it_is_and_named(
    environment: Path, opened: Callable[..., Any]
) -> None:
    (environment / SCHEDULER).write_text("patched\n")
    tree = opened().open("installed")
    assert tree.read(SCHEDULER) == b"patched\n"
    assert tree.notes() == [f"not as its RECORD has them: {SCHEDULER}"]


def test_files_that_an_installer_linked_are_read(
    wheels: Any, environment: Path, opened: Callable[..., Any], tmp_path: Path
) -> None:
    (environment / SCHEDULER).rename(tmp_path / "kept")
    (environment / SCHEDULER).symlink_to(tmp_path / "kept")
    assert opened().open("installed").read(SCHEDULER) == wheels.FILES[SCHEDULER]


def test_an_editable_install_is_read_from_its_source(
    environment: Path, opened: Callable[..., Any], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "vllm").mkdir(parents=True)
    (source / "vllm/__init__.py").write_text("the source\n")
    direct = {"url": source.as_uri(), "dir_info": {"editable": True}}
    (environment / "vllm-0.28.0.dist-info/direct_url.json").write_text(json.dumps(direct))
    tree = opened().open("installed")
    assert tree.read("vllm/__init__.py") == b"the source\n"
    assert tree.build.origin == "installed"


def test_that_nothing_is_installed_is_a_usage_error(opened: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="nosuchengine is not installed"):
        opened(project="nosuchengine").open("installed")
