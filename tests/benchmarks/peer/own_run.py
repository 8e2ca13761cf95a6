"""One workload in specrepro's emulator; prints what it cost and found as JSON.

python own_run.py ROOT SUBJECT SIZE sound|faulty all|default REPEATS

ROOT holds kernels/<op> with PTX. all, default: the checks of the launch.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from references import wrong_outputs
from workloads import Argument, Workload, subject

from specrepro.repro.compiled import load
from specrepro.repro.emulator import parser  # noqa: F401 - else the first launch imports it
from specrepro.repro.emulator.checks import ALL, DEFAULT
from specrepro.repro.emulator.launch import Buffer, LaunchReport, launch
from specrepro.repro.ops import Owners

ENOUGH = 1.0  # seconds of execution after which nothing is repeated


def main(words: list[str]) -> dict[str, Any]:
    folder, name, size, state, which, repeats = words
    root = Path(folder)
    chosen = subject(name)
    workload = chosen.build(*chosen.sizes[size], faulty=state == "faulty")
    checks = {"all": ALL, "default": DEFAULT}[which]
    seconds: list[float] = []
    while len(seconds) < 1 + int(repeats) and sum(seconds) < ENOUGH:
        arguments = buffers(workload, workload.fresh())
        started = time.process_time()
        report = execute(root, chosen.op, workload, arguments, checks, outputs=False)
        seconds.append(time.process_time() - started)
    # once more, with outputs: they must be right, and the same must be found
    left = workload.fresh()
    executed = execute(root, chosen.op, workload, buffers(workload, left), checks, outputs=True)
    found = [
        {
            "kind": str(access.kind),
            "tensor": access.buffer,
            "element": int(access.elements[0]),
            "line": access.line,
            "file": access.file,
        }
        for access in report.accesses
    ]
    wrong = [] if state == "faulty" else wrong_outputs(chosen.op, workload, left)
    if len(executed.accesses) != len(found):
        wrong.append("what is found")
    return {
        "first": seconds[0],
        "again": min(seconds[1:], default=seconds[0]),
        "checks": sorted(checks),
        "decided": report.decided,
        "outcome": "found" if found else "quiet",
        "found": found,
        "wrong_outputs": wrong,
    }


def buffers(workload: Workload, arguments: dict[str, Argument]) -> list[Buffer | int | float]:
    """The arguments of a launch, with who owns what and what nobody has written yet."""
    given: list[Buffer | int | float] = []
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            owners = Owners(*workload.owners[name]) if name in workload.owners else None
            written = np.zeros(value.nbytes, np.bool_) if name in workload.empty else None
            given.append(Buffer(name, value, owners, initialised=written))
        else:
            given.append(value)
    return given


def execute(
    root: Path,
    op: str,
    workload: Workload,
    arguments: list[Buffer | int | float],
    checks: frozenset[str],
    *,
    outputs: bool,
) -> LaunchReport:
    """Launch as a user's would be: the first of a process reads the PTX, the others have it."""
    kernel = load(op, root)
    return launch(
        kernel.parsed(),
        workload.grid,
        kernel.manifest.threads,
        arguments,
        shared_bytes=kernel.manifest.shared_bytes,
        requests=np.arange(workload.grid[0], dtype=np.int32),
        checks=checks,
        outputs=outputs,
    )


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
