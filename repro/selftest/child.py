"""The process in which the planted faults go through the reference lane: a job in, findings out.

Its result.json is there whole or not at all. What the parent reads of it is JSON and nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..lanes.child import end_with_parent, limit_memory
from ..lanes.reference import ReferenceDevice
from ..ops import Argument, Launch, Owners
from ..records import to_json
from .faults import FAR, THREADS
from .reference import PROGRAMS

HALVES = Owners(THREADS, np.array([0, 1], np.int32))  # of a pool, which belong to requests 0 and 1
FIRST = THREADS // 2  # where the write into a pool begins: half of it is in the right half


def main(arguments: list[str]) -> int:
    """Play the faults that the job in directory `arguments[0]` names."""
    directory = Path(arguments[0])
    end_with_parent()
    job = json.loads((directory / "job.json").read_text(encoding="utf-8"))
    limit_memory(int(job["memory_limit"]))
    result = {name: played(name) for name in job["faults"]}
    text = json.dumps(result, allow_nan=False)
    (directory / "result.part").write_text(text, encoding="utf-8")
    os.replace(directory / "result.part", directory / "result.json")
    return 0


def played(name: str) -> list[dict[str, Any]]:
    """The findings of one fault, as JSON."""
    device = ReferenceDevice(0, PROGRAMS.__getitem__)
    requests = np.zeros(1, np.int32)
    device.launch(Launch(0, name, _arguments(name, device), (1, 1, 1), requests, None))
    found: list[dict[str, Any]] = to_json(device.findings)
    return found


def _arguments(name: str, device: ReferenceDevice) -> Mapping[str, Argument]:
    """What the program is given; it must say the same as the argument file of the kernel."""
    if name == "pool_write":
        pool = device.tensor("pool", np.zeros(2 * THREADS, np.int32), owners=HALVES)
        return {"pool": pool, "first": FIRST}
    owner = Owners(THREADS, np.zeros(1, np.int32)) if name == "clean" else None
    given: dict[str, Argument] = {
        "out": device.tensor("out", np.zeros(THREADS, np.int32), owners=owner)
    }
    if name in ("clean", "far_read"):
        given["read"] = device.tensor("in", np.arange(THREADS, dtype=np.int32))
    if name != "clean":
        given["distance"] = THREADS if name == "next_write" else FAR
    return given


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
