"""The numbers that docs/scale.md computes with, each measured by itself on one core.

python tests/benchmarks/scale.py [ROUNDS]

CPU time, the least of the rounds: what a log's line, a journal's line, a line of the kernel log and
a trial's result take, and what a run leaves on the disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import synthetic_logs
from page import SCALE, table, write

from specrepro.repro.bisection.journal import Journal
from specrepro.repro.bisection.verdicts import Good, Observation, Place
from specrepro.repro.diagnose.cluster import look
from specrepro.repro.watch.xid import read_xid

SERVING = 20_000_000  # bytes of a log that serves for long
CRASHED = 200_000  # bytes of a log that is one of many
APPENDS, LINES = 300, 20_000
SWEEP = ("run", "mtp-tail-overflow", "--sweep", "--lane", "reference")
XID = (
    "NVRM: Xid (PCI:0000:41:00): 31, pid=4242, name=python3, Ch 00000010, intr 00000000. MMU Fault"
)
OTHER = "nvidia-modeset: Version mismatch: this is no event of a GPU, as most lines are not"


def least(run: Callable[[], int], rounds: int) -> tuple[float, int]:
    """The least CPU seconds for one thing of a run, and how many there were."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        count = run()
        found.append((time.process_time() - began) / count)
    return min(found), count


def reading(path: Path, count: int) -> Callable[[], int]:
    """Lines of a log that is read and diagnosed `count` times."""

    def run() -> int:
        return sum(look(str(path)).lines for _ in range(count))

    return run


def journal(folder: Path) -> Callable[[], int]:
    """Lines of a journal, each forced to the disk."""
    numbers = iter(range(1_000))

    def run() -> int:
        kept = Journal.open(folder / f"{next(numbers)}.jsonl", {"case": "x"})
        place = Place("here", "x86_64")
        for number in range(1, APPENDS + 1):
            kept.append(Observation("0.28.0", number, Good(), 1.0, "trials/x.json", 0.0, place))
        return APPENDS

    return run


def kernel_log(line: str) -> Callable[[], int]:
    """Lines of the kernel log."""

    def run() -> int:
        for _ in range(LINES):
            read_xid(line)
        return LINES

    return run


def swept(folder: Path) -> tuple[int, int, int]:
    """Trials of a sweep, bytes of its whole directory, and of its record."""
    code = "from specrepro.cli import main; main()"
    command = [sys.executable, "-c", code, *SWEEP, "--runs", str(folder), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    record = json.loads(ended.stdout)
    path = Path(record["run"]["path"])
    whole = sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    trials = sum(len(case["trials"]) for case in record["cases"])
    return trials, whole, (path / "run.json").stat().st_size


def main(arguments: list[str]) -> None:
    rounds = int(arguments[0]) if arguments else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        serving, crashed = folder / "serving.log", folder / "crashed.log"
        synthetic_logs.write(serving, SERVING, 1)
        synthetic_logs.write(crashed, CRASHED, 1)
        bytes_of_line = SERVING / look(str(serving)).lines
        costs = {
            f"a line of a log of {SERVING // 1_000_000} MB, of an engine that serves, "
            f"{bytes_of_line:.0f} bytes": least(reading(serving, 1), rounds),
            f"a line of a log of {CRASHED // 1000} kB that ends in a crash": least(
                reading(crashed, 20), rounds
            ),
            "a line of a search's journal, forced to the disk": least(journal(folder), rounds),
            "a line of the kernel log that is an Xid": least(kernel_log(XID), rounds),
            "a line of the kernel log that is none": least(kernel_log(OTHER), rounds),
        }
        line = max((folder / "0.jsonl").read_bytes().split(b"\n"), key=len)
        trials, whole, record = swept(folder)
    rows = [
        (what, f"{1e6 * seconds:.1f}", f"{1 / seconds:,.0f}")
        for what, (seconds, _) in costs.items()
    ]
    write(
        "scale",
        "Numbers for large runs",
        ["python", "tests/benchmarks/scale.py", *arguments],
        [
            *table(("", "CPU µs", "a second and core"), rows),
            "",
            f"`specrepro {' '.join(SWEEP)}`: {trials} trials leave {whole:,} bytes in the run's "
            f"directory, {whole // trials:,} a trial, {record // trials:,} of them in run.json. A "
            f"line of a journal has at most {len(line)} bytes. Load of the machine at the end "
            f"{os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} CPUs.",
        ],
        file=SCALE,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
