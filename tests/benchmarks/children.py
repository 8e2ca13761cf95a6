"""Measure a child process: wall time, and the CPU time of it and of all it waited for."""

from __future__ import annotations

import resource
import shlex
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one run of a command."""

    wall: float
    cpu: float


def cost(command: Sequence[str], statuses: Collection[int] = (0,)) -> Cost:
    """Run `command`, its output thrown away; ValueError for an exit status not in `statuses`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    quiet = subprocess.DEVNULL
    ended = subprocess.run(command, check=False, stdin=quiet, stdout=quiet, stderr=quiet)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    if ended.returncode not in statuses:
        raise ValueError(f"{shlex.join(command)} ended with status {ended.returncode}")
    return Cost(wall, user + system)


def alternately(
    commands: Mapping[str, Sequence[str]],
    rounds: int,
    statuses: Collection[int] = (0,),
    *,
    warm: bool = False,
) -> dict[str, Cost]:
    """The least cost of each command over `rounds` rounds, every round running each of them once.

    The least is what the command needs; the rest is what else the machine did. warm: the caches are
    warm already; else each command runs once more before.
    """
    for command in () if warm else commands.values():
        cost(command, statuses)
    measured: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            measured[name].append(cost(command, statuses))
    return {
        name: Cost(min(c.wall for c in costs), min(c.cpu for c in costs))
        for name, costs in measured.items()
    }
