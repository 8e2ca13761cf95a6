"""What is said where a cluster cannot be had; nodes that must not be used."""

from __future__ import annotations

import builtins
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.errors import ClusterError, LaneError, UsageError
from specrepro.repro.execution import node as there
from specrepro.repro.execution.digest import code_digest
from specrepro.repro.execution.ray_session import (
    GONE,
    THREAD,
    Session,
    WithoutRay,
    node_from,
    session,
)
from specrepro.repro.execution.task import Needs

RAY_SAYS = {
    "NodeID": "a" * 56,
    "NodeManagerHostname": "box",
    "Resources": {"CPU": 8.0, "GPU": 2.0, "accelerator_type:H100": 1.0, "memory": 1.0},
}


def refused(address: str) -> ClusterError:
    with pytest.raises(ClusterError) as error, session(address):
        pass
    return error.value


@pytest.mark.parametrize("address", ["here", "host", "ray://host.example:1", "a b:1", "host:"])
def test_what_is_no_address_is_refused_with_those_that_are(address: str) -> None:
    error = refused(address)
    assert "is no address of a cluster" in str(error)
    assert error.hint == "--ray HOST:PORT (6379 as a rule), --ray auto, or --ray local"
    assert error.exit_status == 125


def test_a_password_in_an_address_is_not_shown() -> None:
    assert "hunter2" not in str(refused("me:hunter2@host.example:6379"))


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "ray":
            raise ImportError(name)
        return importing(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    error = refused("local")
    assert str(error) == "Ray is not installed here"
    assert error.hint == "pip install 'specrepro[ray]'"


@pytest.mark.ray
def test_where_nobody_listens_it_is_said_at_once() -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    with socket.socket() as one:
        one.bind(("localhost", 0))
        port = one.getsockname()[1]
    assert f"no cluster answers at localhost:{port}" in str(refused(f"localhost:{port}"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ray", "local", "--jobs", "2"], "--ray and --jobs name two places to run in"),
        (["--ray", "local", "--device", "0"], "--ray and --device name two places to run in"),
        (["--jobs", "2", "--device", "0"], "--device names one GPU, --jobs asks for several"),
    ],
)
def test_two_places_are_refused(words: list[str], said: str, tmp_path: Path) -> None:
    from specrepro.repro.commands.options import placed

    options = dict(zip(words[::2], words[1::2], strict=True))
    jobs, device = options.get("--jobs"), options.get("--device")
    with pytest.raises(UsageError, match=said):
        placed(
            None if jobs is None else int(jobs),
            options.get("--ray"),
            None if device is None else int(device),
        )


def test_a_node_is_what_ray_and_its_worker_say() -> None:
    said = there.survey() | {"gpus": [("GPU-1", "NVIDIA H100 PCIe", 5)], "driver": "580.1"}
    node = node_from(RAY_SAYS, said)
    assert (node.refused, node.cpus, node.gpus_counted, node.kinds) == ("", 8.0, 2.0, ("H100",))
    assert (node.driver, node.gpus[0].kind, node.gpus[0].free) == ("580.1", "NVIDIA H100 PCIe", 5)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"version": "0.0.1"}, "specrepro 0.0.1 there"),
        ({"digest": "0" * 64}, "specrepro there has other code"),
        ({"version": "\x1b[31m9"}, r"specrepro \x1b[31m9 there"),
    ],
)
def test_a_node_with_other_code_is_refused_by_name(other: dict[str, str], said: str) -> None:
    node = node_from(RAY_SAYS, there.survey() | other)
    assert node.refused.startswith(said)
    assert "results of two codes are not put together" in node.refused


def test_a_worker_itself_declines_a_task_of_other_code() -> None:
    parcel = {"digest": "0" * 64, "needs": {}, "avoid": []}
    assert "of other code" in str(next(there.carry(parcel, "n", ()))["declined"])


def test_a_gpu_that_is_avoided_declines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(there, "AVOIDED", 0.0)
    needs = {name: getattr(Needs(1), name) for name in Needs.__slots__}
    parcel = {"digest": code_digest(), "needs": needs, "avoid": ["n/7"]}
    assert list(there.carry(parcel, "n", ("7",))) == [{"declined": "GPU 7 is avoided"}]


def test_a_head_that_is_silent_is_waited_for_and_then_the_cluster_is_lost() -> None:
    with socket.socket() as one:
        one.bind(("localhost", 0))
        head = one.getsockname()[:2]
    known = {"a": node_from(RAY_SAYS, there.survey())}
    silent = Session(None, head, None, None)
    assert silent.nodes(known) == known
    silent.answered -= GONE + 1
    with pytest.raises(ClusterError, match="head of the cluster has not answered for 30 s"):
        silent.nodes(known)


def test_a_folder_that_another_user_has_put_there_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"specrepro-{os.getuid()}-play").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LaneError, match="is not ours"):
        there.folder_of("play")


def test_what_nodes_complain_of_does_not_reach_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    stream = WithoutRay(sys.stdout)

    def say(text: str) -> Callable[[], None]:
        return lambda: print(text, file=stream, flush=True)

    for name, text in ((THREAD, "a complaint"), ("another", "data")):
        thread = threading.Thread(target=say(text), name=name)
        thread.start()
        thread.join()
    assert capsys.readouterr().out == "data\n"
