"""A night of logs: clusters of incidents at home, and on a Ray cluster of two nodes.

python tests/benchmarks/clustered_logs.py [LOGS]

Logs are made up (synthetic_logs.py). Each command in turn; their records must be the same. CPU
time is that of a command's own processes: Ray's daemons do not wait for their workers, so what
these took cannot be told afterwards. Needs Ray.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import synthetic_logs
from page import SCALE, table, write

SIZE = 200_000  # bytes of a log
DIFFERENT = 50  # logs; each is there as often as it takes
STORE = 256 << 20
CODES = (13, 31, 48, 79, 94)
XID = "[123456.789] NVRM: Xid (PCI:0000:41:00): {code}, pid=4242, name=python3, Ch 00000010\n"


def made(folder: Path, count: int) -> None:
    """So many logs; those that are alike are links to one file."""
    folder.mkdir()
    for number in range(count):
        path, first = folder / f"{number:05}.log", folder / f"{number % DIFFERENT:05}.log"
        if number < DIFFERENT:
            synthetic_logs.write(path, SIZE, number)
            with path.open("a") as file:  # several kinds of incident
                file.write(XID.format(code=CODES[number % len(CODES)]))
        else:
            os.link(first, path)


def diagnosed(folder: Path, *options: str) -> tuple[dict[str, Any], float, float]:
    """The record without what is of a run; CPU seconds, those of nodes left out; wall seconds."""
    code = "from specrepro.cli import main; main()"
    with tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, "-c", code, "diagnose", str(folder), "--json", "--runs", runs]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ended = subprocess.run([*command, *options], stdout=subprocess.PIPE, check=True)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    record: dict[str, Any] = json.loads(ended.stdout)
    return {key: value for key, value in record.items() if key != "run"}, cpu, wall


def main(arguments: list[str]) -> None:
    from ray.cluster_utils import Cluster

    count = int(arguments[0]) if arguments else 5000
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0"}
    node = {"num_cpus": 1, "object_store_memory": STORE}
    rows, records = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "night"
        made(folder, count)
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        cluster.add_node(**node)
        try:
            for options in (
                ("--jobs", "1"),
                ("--jobs", "2"),
                ("--ray", str(cluster.address), "--in-place"),
                ("--ray", str(cluster.address)),
            ):
                record, cpu, wall = diagnosed(folder, *options)
                records.append(record)
                shown = " ".join(options).replace(str(cluster.address), "HEAD")
                rows.append((f"`specrepro diagnose night {shown}`", cpu, wall))
        finally:
            cluster.shutdown()
    if any(record != records[0] for record in records):
        raise SystemExit("the records differ")
    lines = records[0]["lines"]
    write(
        "clustered-logs",
        "A night of logs",
        ["python", "tests/benchmarks/clustered_logs.py", *arguments],
        [
            f"Ray {metadata.version('ray')}, two nodes of one CPU each on this machine. {count:,} "
            f"logs of {SIZE // 1000} kB, {lines:,} lines, each with a failure of eight workers; "
            f"the {len(records[0]['incidents'])} clusters and all else in the four records are the "
            f"same. Load of the machine at the end {os.getloadavg()[0]:.1f}.",
            "",
            *table(
                ("command", "CPU s at home", "wall s"),
                [(what, f"{cpu:.1f}", f"{wall:.0f}") for what, cpu, wall in rows],
            ),
        ],
        file=SCALE,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
