"""`specrepro run` on a Ray cluster of two nodes: what is lost is tried elsewhere, nothing is
counted twice, and the record is that of a run at home."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.errors import ClusterError
from specrepro.repro.execution.choice import Choice, place_of
from specrepro.repro.execution.play import play
from specrepro.repro.execution.task import Done, Fate, Moment, Needs, Task

pytestmark = pytest.mark.ray


def limits_and_names(support: Any, folder: Path) -> tuple[dict[str, str], set[str]]:
    """The limits and the names in the environment of the lane's child that works in `folder`."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        for pid, line in support.commands(folder).items():
            if "specrepro.repro.lanes.child" not in line:
                continue
            try:
                rows = Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]
                words = Path(f"/proc/{pid}/environ").read_text().split("\0")
            except OSError:
                continue  # it ended meanwhile
            limits = {row[:26].strip(): row[26:68].strip() for row in rows}
            if limits["Max address space"].split()[0] == str(4 << 30):  # it has bounded itself
                return limits, {word.partition("=")[0] for word in words if word}
        time.sleep(0.005)
    raise AssertionError("no child was seen that has bounded itself")


def played(
    address: str, tasks: list[Task], folder: Path, told: Any = lambda moment: None
) -> list[Done]:
    with place_of(Choice(ray=address), folder, told) as where:
        return list(play(tasks, where, told))


def test_a_node_that_is_lost_in_a_sweep_of_200_trials_loses_and_doubles_nothing(
    nodes: Any, specrepro: Any, support: Any, swept: Path, at_home: dict[str, Any]
) -> None:
    extra = nodes.add()
    started = specrepro("run", swept, *support.sweep, "--ray", nodes.address)
    run = started.until(4)
    nodes.remove(extra)
    record = started.record()
    assert support.plain(record) == support.plain(at_home)
    assert sum(place["trials"] for place in record["places"]) == 200
    assert len({place["node"] for place in record["places"]}) >= 2
    (lane,) = (path for path in (run / "mtp-tail-overflow").iterdir() if path.is_dir())
    left = {path.name for path in lane.iterdir()}
    assert left == {"job.json", "result.ndjson", "ending.json", "stdout", "stderr", "scratch"}
    assert len((lane / "result.ndjson").read_text().splitlines()) == 201


def test_a_task_whose_worker_is_killed_is_tried_again_and_counts_once(
    nodes: Any, support: Any, tmp_path: Path
) -> None:
    killed: list[int] = []
    heard: list[Moment] = []

    def told(moment: Moment) -> None:
        heard.append(moment)
        if moment.state == "started" and len(killed) < 2:
            assert moment.place is not None
            assert moment.place.pid is not None
            killed.append(moment.place.pid)
            os.kill(moment.place.pid, signal.SIGKILL)

    done = played(nodes.address, support.tasks(tmp_path, 4), tmp_path, told)
    assert len(killed) == 2
    assert sorted(one.task.id for one in done) == ["t0", "t1", "t2", "t3"]
    assert [one.lost for one in done] == [""] * 4
    reasons = Counter(tried.reason for one in done for tried in one.tried)
    assert reasons == {"its worker was lost": 2}
    assert [m.detail for m in heard if m.state == "again"] == ["its worker was lost"] * 2
    assert nodes.left() == {}


def test_a_gpu_that_lost_two_results_is_avoided_and_named(
    nodes: Any, support: Any, tmp_path: Path
) -> None:
    node = nodes.add(num_gpus=2, resources={"accelerator_type:H100": 1})
    avoided: list[str] = []
    ran: list[str] = []

    def told(moment: Moment) -> None:
        if moment.state == "avoided":
            avoided.append(moment.detail)
        if moment.state == "started" and moment.place is not None:
            (gpu,) = moment.place.gpus
            assert moment.place.gpu_type == "H100"
            if gpu == "0":
                assert moment.place.pid is not None
                os.kill(moment.place.pid, signal.SIGKILL)
            else:
                ran.append(gpu)

    try:
        needs = Needs(gpus=1, gpu_types=("H100",), cpus=0)
        done = played(nodes.address, support.tasks(tmp_path, 3, needs=needs), tmp_path, told)
    finally:
        nodes.remove(node)
    assert [one.lost for one in done] == [""] * 3
    assert ran == ["1"] * 3
    # whoever was given the avoided one keeps it, so that those that come next get another
    assert sum(tried.fate is Fate.REFUSED for one in done for tried in one.tried) <= 1
    (said,) = avoided
    assert said.startswith(f"{node.node_id[:8]}/0: 2 results lost there")


def test_what_no_node_has_is_said_node_by_node(nodes: Any, support: Any, tmp_path: Path) -> None:
    needs = Needs(gpus=1, gpu_types=("H100",))
    (done,) = played(nodes.address, support.tasks(tmp_path, 1, needs=needs), tmp_path)
    assert done.lost.startswith("no node can take it: node ")
    assert done.lost.count("has 0 GPUs, needs 1") == 2


def test_a_case_gains_nothing_on_a_node(nodes: Any, support: Any, tmp_path: Path) -> None:
    assert "SPECREPRO_TEST_TOKEN" in os.environ  # and so in what each node was started with
    seen = []
    for name, choice in (("home", Choice(1)), ("away", Choice(ray=nodes.address))):
        folder = tmp_path if name == "home" else nodes.folder
        with ThreadPoolExecutor(1) as looking, place_of(choice, tmp_path) as where:
            looked = looking.submit(limits_and_names, support, folder)
            (done,) = play(support.tasks(tmp_path / name, 1), where)
            seen.append(looked.result(timeout=1))
        assert done.lost == ""
    (limits, names), (limits_there, names_there) = seen
    assert limits_there == limits
    assert names_there == names
    assert not {name for name in names_there if name.startswith(("RAY", "SPECREPRO"))}


def test_ctrl_c_leaves_nothing_running_and_the_rest_is_played_at_home(
    nodes: Any, specrepro: Any, support: Any, swept: Path, at_home: dict[str, Any]
) -> None:
    started = specrepro("run", swept, *support.sweep, "--ray", nodes.address)
    run = started.until(3)
    status, said = started.end(signal.SIGINT)
    assert status == 130, said
    assert f"specrepro run --resume {run.name}" in said
    assert nodes.left() == {}
    there = len(support.whole_pieces(run))
    again = specrepro("run", "--resume", run.name, "--runs", run.parent, "--jobs", "2")
    record = again.record()
    assert support.plain(record) == support.plain(at_home)
    assert sum(place["trials"] for place in record["places"]) == 8 * there


def test_a_driver_that_is_killed_comes_back_and_nothing_is_counted_twice(
    nodes: Any, specrepro: Any, support: Any, swept: Path, at_home: dict[str, Any]
) -> None:
    started = specrepro("run", swept, *support.sweep, "--ray", nodes.address)
    run = started.until(3)
    status, _ = started.end(signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert nodes.left() == {}
    again = specrepro("run", "--resume", run.name, "--runs", run.parent, "--ray", nodes.address)
    record = again.record()
    assert support.plain(record) == support.plain(at_home)
    assert sum(place["trials"] for place in record["places"]) == 200


def test_a_second_connection_of_one_process_is_refused(nodes: Any, tmp_path: Path) -> None:
    with (
        place_of(Choice(ray=nodes.address), tmp_path),
        pytest.raises(ClusterError, match="connected to a cluster already"),
        place_of(Choice(ray=nodes.address), tmp_path),
    ):
        pass
