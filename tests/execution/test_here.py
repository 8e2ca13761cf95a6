"""Tasks in this process tree: cut results, GPUs one task each, two processes and one GPU."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.errors import LaneError
from specrepro.repro.execution.cards import Cards, hold, open_cards
from specrepro.repro.execution.here import here
from specrepro.repro.execution.laying_out import job_text
from specrepro.repro.execution.play import play
from specrepro.repro.execution.policy import MOST_ATTEMPTS
from specrepro.repro.execution.task import Attempt, Moment, Needs, Task
from specrepro.repro.watch.gpus import Gpu, Gpus

H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"


def gpu(index: int, name: str = H100) -> Gpu:
    """A GPU that is well and on which nobody computes."""
    return Gpu(index, name, f"GPU-test-{index}", None, "9.0", 80 << 30, 79 << 30, False, "none", ())


def attempt(needs: Needs, *not_at: str) -> Attempt:
    return Attempt(Task("t", "lane", {}, Path("t"), 1.0, needs), 1, frozenset(not_at))


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of locks of the test's own."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_lane_that_was_cut_into_pieces_leaves_what_one_child_leaves(
    specrepro: Any, support: Any, swept: Path
) -> None:
    narrow = swept.with_name("narrow.yaml")
    narrow.write_text(swept.read_text().replace("16..64", "60..64"))
    records = []
    for words in ([], ["--jobs", "2"]):
        started = specrepro("run", narrow, *support.sweep, *words)
        records.append((started.record(), started.run() / "mtp-tail-overflow" / "reference"))
    (whole, lane), (cut, lane_of_pieces) = records
    assert len(whole["cases"][0]["trials"]) > 16
    assert support.plain(cut) == support.plain(whole)
    assert cut["places"] == whole["places"] == []
    assert (lane_of_pieces / "job.json").read_text() == (lane / "job.json").read_text()
    assert {p.name for p in lane_of_pieces.iterdir()} == {p.name for p in lane.iterdir()}


@pytest.mark.parametrize("cuts", [1, MOST_ATTEMPTS])
def test_a_result_that_is_cut_is_tried_again_and_counts_once(
    cuts: int, support: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\nfor directory; do :; done\n"
        f'echo x >> "{tmp_path}/starts"\n'
        f'if [ $(wc -l < "{tmp_path}/starts") -le {cuts} ]; then\n'
        '  printf "{\\"trial\\": 0" > "$directory/result.ndjson"; exit 0; fi\n'
        f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    heard: list[Moment] = []
    with here(1, tmp_path) as where:
        (done,) = play(support.tasks(tmp_path, 1), where, heard.append)
    reason = "the result file is cut, although its child ended well"
    assert {tried.reason for tried in done.tried} == {reason}
    assert len(done.tried) == cuts
    assert done.lost == ("" if cuts == 1 else f"lost {cuts} times: {reason}")
    assert sum(moment.state == "ended" for moment in heard) == 1


def test_a_child_that_dies_is_evidence_and_no_reason_to_try_again(
    support: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -SEGV $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with here(1, tmp_path) as where:
        (done,) = play(support.tasks(tmp_path, 1), where)
    assert (done.lost, done.tried, done.ended.reason) == ("", (), "ended by SIGSEGV")


def test_files_are_laid_out_and_an_earlier_folder_is_gone(support: Any, tmp_path: Path) -> None:
    (task,) = support.tasks(tmp_path, 1)
    task.directory.mkdir()
    (task.directory / "old").touch()
    with here(1, tmp_path) as where:
        list(play([task], where))
    left = {path.name for path in task.directory.iterdir()}
    assert left == {"job.json", "result.ndjson", "stdout", "stderr", "scratch"}
    assert (task.directory / "job.json").read_text() == job_text(task.job)


def test_two_processes_never_hold_one_gpu(locks: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from specrepro.repro.execution.cards import hold\n"
        "from specrepro.repro.watch.gpus import Gpu\n"
        "gpu = Gpu(0, None, 'GPU-test-0', *[None] * 7)\n"
        "print(hold(gpu, pathlib.Path(sys.argv[1])) is not None, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(locks)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert hold(gpu(0), locks) is None
        with pytest.raises(LaneError, match="GPU 0 is in use: another specrepro process"):
            open_cards(Gpus((gpu(0),), "580.1", "13.0", ""), None, {}, force=False)
        cards = open_cards(Gpus((gpu(0), gpu(1)), "580.1", "13.0", ""), None, {}, False, 8)
        assert [one.index for one in cards.gpus] == [1]
        cards.close()
        other.communicate()
    cards = open_cards(Gpus((gpu(0),), "580.1", "13.0", ""), None, {}, force=False)
    assert [one.index for one in cards.gpus] == [0]
    cards.close()


def test_one_gpu_is_never_given_to_two_tasks_at_once(locks: Path) -> None:
    cards = open_cards(Gpus((gpu(0), gpu(1)), "580.1", "13.0", ""), None, {}, False, 2)
    held: list[str] = []
    most: list[int] = []
    lock = threading.Lock()

    def work() -> None:
        for _ in range(50):
            place = cards.take(attempt(Needs(1)))
            with lock:
                held.extend(place.gpus)
                most.append(max(held.count(name) for name in held))
            with lock:
                held.remove(place.gpus[0])
            cards.give(place)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(most) == 300
    assert set(most) == {1}
    cards.close()


def test_a_task_goes_to_another_gpu_than_before_and_to_none_that_is_avoided(locks: Path) -> None:
    cards = open_cards(Gpus((gpu(0), gpu(1)), "580.1", "13.0", ""), None, {}, False, 2)
    place = cards.take(attempt(Needs(1), "here/GPU-test-0"))
    assert place.gpus == ("GPU-test-1",)
    cards.give(place)
    cards.avoid("here/GPU-test-1", "2 results lost there")
    assert cards.take(attempt(Needs(1), "here/GPU-test-0")).gpus == ("GPU-test-0",)
    cards.avoid("here/GPU-test-0", "it fell off the bus")
    with pytest.raises(LaneError, match="stopped: 2 results lost there; it fell off the bus"):
        cards.take(attempt(Needs(1)))
    cards.close()


def test_needs_that_no_gpu_here_meets_are_named_gpu_by_gpu(locks: Path) -> None:
    found = Gpus((gpu(0), gpu(1, A100)), "570.1", "13.0", "")
    cards = open_cards(found, None, {}, False, 2)
    assert cards.take(attempt(Needs(1, ("A100",)))).gpus == ("GPU-test-1",)
    assert cards.unmet(Needs(1, ("H100",), 10 << 30, ">=570")) == ""
    assert cards.unmet(Needs(1, ("H200",))) == (
        f"GPU 0 needs H200, is {H100}; GPU 1 needs H200, is {A100}"
    )
    assert "needs driver >=580, has 570.1" in cards.unmet(Needs(1, driver=">=580"))
    assert cards.unmet(Needs(3)) == "needs 3 GPUs, 2 may be used"
    cards.close()


def test_only_gpus_that_this_process_may_see_are_used(locks: Path) -> None:
    found = Gpus((gpu(0), gpu(1), gpu(2)), "580.1", "13.0", "")
    environ = {"CUDA_VISIBLE_DEVICES": "2,GPU-test-0"}
    cards: Cards = open_cards(found, None, environ, False, 8)
    assert [one.index for one in cards.gpus] == [2, 0]
    cards.close()
