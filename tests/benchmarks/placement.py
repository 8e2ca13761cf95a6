"""What a place costs a trial: the child alone, the pool of this machine, Ray on this machine.

python tests/benchmarks/placement.py [TRIALS] [ROUNDS]

The same trials, a child each, in turn in every place. CPU time is that of all processes below this
one, Ray's own included. Needs Ray.
"""

from __future__ import annotations

import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from page import SCALE, table, write

from specrepro.repro.case import load_cases
from specrepro.repro.execution.choice import Choice, place_of
from specrepro.repro.execution.laying_out import job_text, lay_out
from specrepro.repro.execution.play import Where, play
from specrepro.repro.execution.task import Task
from specrepro.repro.job import Job, pieces
from specrepro.repro.lanes.process import Children, run_child
from specrepro.repro.plan import plan

CASE = "mtp-tail-overflow"
TICK = os.sysconf("SC_CLK_TCK")
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one trial, seconds. driver: CPU of this process alone."""

    wall: float
    cpu: float
    driver: float


def below() -> float:
    """CPU seconds of every process below this one that is there, and of those they waited for."""
    stats: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        stats[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / TICK
    mine = {os.getpid()}
    while more := {pid for pid, (parent, _) in stats.items() if parent in mine} - mine:
        mine |= more
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = sum(seconds for pid, (_, seconds) in stats.items() if pid in mine - {os.getpid()})
    return found + waited.ru_utime + waited.ru_stime


def own() -> float:
    """CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def tasks(folder: Path, count: int) -> list[Task]:
    """Tasks of one trial each."""
    [loaded] = load_cases([CASE])
    planned = plan(loaded.case, loaded.case, lanes=("reference",), variants=("fixed",))
    job = Job(loaded, loaded.case, planned, "reference", folder, False, 120.0)
    described = pieces(job, 1)[0].described
    return [Task(f"t{n}", "lane", described, folder / f"t{n}", 120.0) for n in range(count)]


def alone(todo: Sequence[Task]) -> None:
    """The children one after the other, and nothing around them."""
    for task in todo:
        lay_out(task.directory, job_text(task.job), {})
        run_child(task.directory, task.timeout, Children())


def placed(where: Where) -> Callable[[Sequence[Task]], None]:
    """The trials in a place."""

    def run(todo: Sequence[Task]) -> None:
        ended = list(play(todo, where))
        if len(ended) != len(todo) or any(done.lost or done.ended.reason for done in ended):
            raise SystemExit(f"a trial was lost: {[done.lost for done in ended]}")

    return run


def measured(run: Callable[[Sequence[Task]], None], count: int) -> Iterator[Cost | int]:
    """The cost of one trial, then the bytes that one leaves."""
    with tempfile.TemporaryDirectory() as name:
        todo = tasks(Path(name), count)
        before, mine, began = below(), own(), time.perf_counter()
        run(todo)
        wall = time.perf_counter() - began
        yield Cost(wall / count, (below() - before) / count, (own() - mine) / count)
        files = (p for p in todo[0].directory.rglob("*") if p.is_file())
        yield sum(path.stat().st_size for path in files)


def least(costs: Sequence[Cost]) -> Cost:
    """The least of each: the rest is what else the machine did."""
    return Cost(*(min(getattr(c, k) for c in costs) for k in ("wall", "cpu", "driver")))


def main(arguments: list[str]) -> None:
    count, rounds = (int(a) for a in (*arguments, *("20", "3")[len(arguments) :]))
    found: dict[str, list[Cost]] = {}
    left = 0
    with tempfile.TemporaryDirectory() as shared, ExitStack() as held:
        ray = held.enter_context(place_of(Choice(ray="local"), Path(shared)))
        first, pool = "the children alone, one after the other", f"a pool of {WORKERS} here"
        runs = {first: alone, "Ray on this machine": placed(ray)}
        for number in range(rounds + 1):  # the first time imports, and starts Ray's workers
            for name in (*runs, pool):
                if name == pool:
                    with place_of(Choice(WORKERS), Path(shared)) as here:
                        cost, left = measured(placed(here), count)
                else:
                    cost, left = measured(runs[name], count)
                if number and isinstance(cost, Cost):
                    found.setdefault(name, []).append(cost)
        before, began = below() + own(), time.perf_counter()
        time.sleep(5)
        idle = (below() + own() - before) / (time.perf_counter() - began)
    costs = {name: least(found[name]) for name in (first, pool, "Ray on this machine")}
    base = costs[first]
    rows = [
        (
            name,
            f"{1000 * (one.cpu + one.driver):.0f}",
            f"{(one.cpu + one.driver) / (base.cpu + base.driver):.2f}",
            f"{1000 * one.driver:.1f}",
            f"{1000 * one.wall:.0f}",
        )
        for name, one in costs.items()
    ]
    write(
        "placement",
        "What a place costs a trial",
        ["python", "tests/benchmarks/placement.py", *arguments],
        [
            f"Ray {metadata.version('ray')}; {count} trials of one child each ({CASE}, variant "
            f"fixed, lane reference), in turn in each place, least of {rounds} rounds; load of the "
            f"machine at the end {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} CPUs "
            f"({platform.machine()}), so wall time says little. A trial leaves {left:,} bytes. Ray "
            f"with nothing to do takes {100 * idle:.0f} % of a CPU.",
            "",
            *table(("place", "CPU ms a trial", "ratio", "of that at home", "wall ms"), rows),
            "",
            "A sweep is cut into pieces of several trials, so that this is paid once a piece.",
        ],
        file=SCALE,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
