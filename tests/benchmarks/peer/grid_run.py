"""Time and memory of one launch by its number of programs; prints JSON.

python grid_run.py ROOT SUBJECT PROGRAMS
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from own_run import buffers, execute
from workloads import paged_decode, scatter

from specrepro.repro.compiled import load
from specrepro.repro.emulator.checks import ALL

# one head, so that programs are requests; four cache blocks each
BUILDERS = {
    "scatter": lambda programs: scatter(programs, faulty=False),
    "paged_decode": lambda programs: paged_decode(programs, 1, 64, faulty=False),
}
REPEATS = 3


def main(root: Path, op: str, programs: int) -> dict[str, Any]:
    # what a first launch leaves behind for good is not of this one
    small = BUILDERS[op](1)
    execute(root, op, small, buffers(small, small.fresh()), ALL, outputs=True)
    workload = BUILDERS[op](programs)
    arguments = buffers(workload, workload.fresh())
    before = forget_peak()
    execute(root, op, workload, arguments, ALL, outputs=True)
    peak = memory("VmHWM") - before
    seconds = []
    for _ in range(REPEATS):
        arguments = buffers(workload, workload.fresh())
        started = time.process_time()
        report = execute(root, op, workload, arguments, ALL, outputs=True)
        seconds.append(time.process_time() - started)
    if report.accesses:
        raise ValueError(f"{op} of {programs} programs: {report.accesses}")
    threads = load(op, root).manifest.threads[0] * programs
    return {"seconds": min(seconds), "peak": peak, "threads": threads}


def forget_peak() -> int:
    """Bytes resident now, from which the peak counts anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return memory("VmRSS")


def memory(name: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    match = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
    if match is None:
        raise ValueError(f"no {name} in the status of this process")
    return int(match[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
