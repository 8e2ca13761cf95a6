"""A cluster of two nodes on this machine, a case whose sweep has 200 trials, and specrepro as a
process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.execution.task import Task
from specrepro.repro.job import Job, pieces
from specrepro.repro.plan import plan

CODE = "import sys; from specrepro.cli import main; main()"
SMALL = 100 << 20  # bytes of an object store; the least that Ray takes is 75 MiB
GIVEN = "SPECREPRO_TEST_TOKEN"  # in the environment of every node
SWEEP = 'seq_len: "56..64"\n  num_speculative_tokens: [1, 2, 3, 5, 8]'
WIDE = 'seq_len: "16..64"\n  num_speculative_tokens: [2, 3]'  # and two faces
TWO = ("--variant", "faulty", "--variant", "fixed", "--sweep")
TRIALS = 200


def commands(word: str | Path) -> dict[int, str]:
    """Processes of this machine whose command line has a word, such as a folder of the test's."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it ended meanwhile
            if str(word) in line:
                found[int(entry.name)] = line
    return found


def descendants(parent: int) -> set[int]:
    """Processes that a process started, and what those started."""
    found, new = set[int](), {parent}
    while new:
        children = set()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) in new:
                    children.add(int(entry.name))
        new = children - found
        found |= new
    return found


def until_empty(look: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What `look` finds, once that is nothing or time is up."""
    until = time.monotonic() + seconds
    while (left := look()) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def ports() -> dict[str, int]:
    """Ports for the agents of a node. Where they are known, its raylet does not wait, 15 seconds at
    most, for slow interpreters to say which ones they took."""
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in (*names, "runtime_env")]
        for one in sockets:
            one.bind(("", 0))
        free = [int(one.getsockname()[1]) for one in sockets]
    return dict(zip((*names, "runtime_env_agent_port"), free, strict=True))


def patiently(start: Callable[[], Any]) -> Any:
    """Start a part of a cluster. Ray gives it half a minute, which a busy machine may not; then
    what was started so far is ended, and it is started again."""
    for _ in range(3):
        before = descendants(os.getpid())
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
            for pid in descendants(os.getpid()) - before:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    return start()


def runs(pid: int) -> bool:
    """Whether a process is there, and is more than a status that nobody has asked for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass
class Nodes:
    """A cluster of one head and what was added to it, each with one CPU."""

    cluster: Any
    folder: Path  # where its nodes keep what is temporary

    def left(self) -> dict[int, str]:
        """Processes on its nodes that belong to tasks, once they are gone or time is up."""
        left: dict[int, str] = until_empty(lambda: commands(self.folder))
        return left

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self, **more: Any) -> Any:
        options = {"num_cpus": 1, "object_store_memory": SMALL, **ports(), **more}
        return patiently(lambda: self.cluster.add_node(**options))

    def remove(self, node: Any) -> None:
        self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A cluster; skips without Ray. Afterwards no process of it is left."""
    pytest.importorskip("ray", reason="ray is not installed")
    from ray.cluster_utils import Cluster

    folder = tmp_path_factory.mktemp("node")
    given = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_TMPDIR": tempfile.gettempdir(),  # its sockets must have short names
        "RAY_worker_niceness": "0",  # others that work on this machine need not come first
        "TMPDIR": str(folder),
        GIVEN: "hunter2",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        head = {"num_cpus": 1, "object_store_memory": SMALL, "include_dashboard": False, **ports()}
        cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        made = Nodes(cluster, folder)
        made.add()
        yield made
        started = descendants(os.getpid())
        cluster.shutdown()
    assert until_empty(lambda: {pid for pid in started if runs(pid)}) == set()
    assert until_empty(lambda: commands(folder)) == {}


@dataclass
class Started:
    """specrepro at work in a process of its own."""

    process: subprocess.Popen[str]
    runs: Path

    def run(self) -> Path:
        """Its run directory, once there is one."""
        while not (found := [p for p in self.runs.glob("*-run-*") if p.is_dir()]):
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)
        return found[-1]

    def until(self, pieces: int) -> Path:
        """Wait until so many pieces of the sweep are whole; the run directory."""
        run = self.run()
        while len(whole_pieces(run)) < pieces:
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)
        return run

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal; status and stderr."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=120)
        return self.process.returncode, said

    def record(self) -> dict[str, Any]:
        """Its record, once it has ended."""
        out, said = self.process.communicate(timeout=600)
        assert self.process.returncode in (0, 1, 125), said
        self.said = said
        record: dict[str, Any] = json.loads(out)
        return record


def whole_pieces(run: Path) -> list[Path]:
    """The pieces of a sweep that are at home."""
    return sorted(path.parent for path in run.glob("*/*/pieces/*/ending.json"))


def plain(record: Mapping[str, Any]) -> Any:
    """The cases of a record but for their times, and the path of the case file: a run that was
    resumed names its own copy."""
    cases = json.loads(json.dumps(record["cases"]))
    for case in cases:
        case["again"] = case["again"] and case["again"][3:]
        for trial in case["trials"]:
            del trial["seconds"]
    return cases


@pytest.fixture
def specrepro(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """Starts `specrepro WORDS --json`; what has not ended when the test does is killed."""
    made: list[Started] = []

    def begin(*words: str | Path, **more: str) -> Started:
        runs = tmp_path / "runs" / str(len(made))
        options = [] if "--resume" in words else ["--runs", str(runs)]
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, *map(str, words), *options, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"NO_COLOR": "1", **more},
            start_new_session=True,
        )
        made.append(Started(process, runs))
        return made[-1]

    yield begin
    for one in made:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGKILL)
            one.process.communicate()


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case with 200 trials: two variants at a hundred points, in one lane."""
    [loaded] = load_cases(["mtp-tail-overflow"])
    text = loaded.path.read_text()
    text = re.sub(r"^lanes: .*$", "lanes: [reference]", text, count=1, flags=re.MULTILINE)
    assert SWEEP in text
    path = tmp_path_factory.mktemp("case") / "wide.yaml"
    path.write_text(text.replace(SWEEP, WIDE))
    return path


@pytest.fixture(scope="module")
def at_home(swept: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The record of the sweep, played in one process tree and in one piece."""
    runs = str(tmp_path_factory.mktemp("home"))
    command = [sys.executable, "-c", CODE, "run", str(swept), *TWO, "--runs", runs, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    record: dict[str, Any] = json.loads(done.stdout)
    assert len(record["cases"][0]["trials"]) == TRIALS
    return record


def lane_tasks(folder: Path, count: int, **more: Any) -> list[Task]:
    """As many tasks of one trial each, of a shipped case in lane `reference`."""
    [loaded] = load_cases(["mtp-tail-overflow"])
    planned = plan(loaded.case, loaded.case, lanes=("reference",), variants=("fixed",))
    job = Job(loaded, loaded.case, planned, "reference", folder, False, 120.0)
    described = pieces(job, 1)[0].described
    return [
        Task(f"t{n}", "lane", described, folder / f"t{n}", 120.0, label=f"task {n}", **more)
        for n in range(count)
    ]


@dataclass(frozen=True)
class Support:
    """What tests share beyond fixtures."""

    commands = staticmethod(commands)
    plain = staticmethod(plain)
    tasks = staticmethod(lane_tasks)
    whole_pieces = staticmethod(whole_pieces)
    sweep: tuple[str, ...] = TWO


@pytest.fixture(scope="session")
def support() -> Support:
    return Support()
