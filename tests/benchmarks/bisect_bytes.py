"""What a search among releases costs, beside downloading wheels that it tries with pip.

python tests/benchmarks/bisect_bytes.py

Each search begins with an empty cache. After the first, pip downloads WITH_PIP of the releases that
it tried, without their dependencies; each is deleted again.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from page import table, write

WITH_PIP = 3
RANGE = "0.11.0..0.33.0"
# arguments of `specrepro bisect`, and the boundary that is known
SEARCHES = (
    ("stale-draft-metadata --find fix --bad 0.12.0 --good 0.33.0", "0.21.0"),
    ("gdn-pipeline-state --defect batch-row-copy --good 0.11.0 --bad 0.31.0", "0.25.0"),
    ("gdn-pipeline-state --defect batch-row-copy --bad 0.25.0 --good 0.33.0", "0.32.0"),
    (
        "draft-length-gate --defect dict-override --with async=on --good 0.11.0 --bad 0.33.0",
        "0.14.0",
    ),
    (
        "draft-length-gate --defect dict-override --with async=off --good 0.11.0 --bad 0.33.0",
        "0.20.0",
    ),
    (f"stale-draft-metadata --scan --find fix --vllm {RANGE}", "0.21.0"),
    (f"gdn-pipeline-state --scan --defect batch-row-copy --vllm {RANGE}", "0.25.0"),
    (f"draft-length-gate --scan --defect dict-override --vllm {RANGE}", "0.14.0"),
    (f"mtp-tail-overflow --scan --vllm {RANGE}", "none"),
    (f"mtp-plan-buffer-race --scan --defect engine-buffers --find fix --vllm {RANGE}", "0.29.0"),
)


@dataclass(frozen=True)
class Taken:
    """seconds: by the clock; cpu: seconds of this machine's processors; size: bytes."""

    seconds: float
    cpu: float
    size: int = 0


def timed(command: list[str]) -> tuple[str, Taken]:
    """What a command printed, and what it took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True)
    took = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ran.stdout, Taken(took, cpu)


def search(arguments: str) -> tuple[dict[str, Any], Taken]:
    """The record of a search with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        code = "from specrepro.cli import main; main()"
        command = [sys.executable, "-c", code, "bisect", *arguments.split(), "--json"]
        command += ["--cache", f"{folder}/cache", "--runs", f"{folder}/runs"]
        out, took = timed(command)
    record: dict[str, Any] = json.loads(out)
    return record, took


def downloaded(version: str) -> Taken:
    """One release of vllm, as pip downloads it."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--no-deps", "--no-cache-dir", "--only-binary", ":all:"]
        command = [sys.executable, "-m", "pip", "download", *options, "-d", folder]
        _, took = timed([*command, f"vllm=={version}"])
        [wheel] = Path(folder).glob("*.whl")
        return Taken(took.seconds, took.cpu, wheel.stat().st_size)


def mb(size: float) -> str:
    return f"{size / 1e6:.1f}"


def main() -> None:
    rows = []
    wheels: dict[str, Taken] = {}
    beside: list[str] = []
    for arguments, known in SEARCHES:
        record, took = search(arguments)
        found = record["result"]["build"] or "none"
        assert found == known, f"{arguments}: {found}, not {known}"
        tried = list(dict.fromkeys(row["build"] for row in record["trials"]))
        requests, received = record["traffic"]["requests"], record["traffic"]["bytes"]
        if not wheels:
            wheels = {version: downloaded(version) for version in tried[:WITH_PIP]}
            size, seconds = (
                sum(w.size for w in wheels.values()),
                sum(w.seconds for w in wheels.values()),
            )
            beside = [
                f"The first search asked {len(tried)} releases in {took.seconds:.0f} s and read "
                f"{mb(received)} MB. Right after it, `pip download --no-deps` of {len(wheels)} "
                f"of them took {seconds:.0f} s and {mb(size)} MB: {size / received:.0f} times the "
                f"bytes and {seconds / took.seconds:.1f} times the seconds, for {len(wheels)} "
                f"releases of {len(tried)}. Nothing is said of the others, and an installation "
                "would fetch the dependencies too.",
                "",
                *table(
                    ("pip: release", "MB", "s", "CPU s"),
                    [
                        (version, mb(one.size), f"{one.seconds:.0f}", f"{one.cpu:.1f}")
                        for version, one in wheels.items()
                    ],
                ),
            ]
            print("\n".join(beside), flush=True)
        rows.append(
            (
                f"`{arguments}`",
                found,
                str(len(tried)),
                str(requests),
                mb(received),
                f"{took.seconds:.0f}",
                f"{took.cpu:.1f}",
            )
        )
        print("|".join(rows[-1]), flush=True)
    head = ("`specrepro bisect` …", "boundary", "releases tried", "requests", "MB", "s", "CPU s")
    write(
        "bisect-bytes",
        "Searching releases without installing them",
        ["python", "tests/benchmarks/bisect_bytes.py"],
        [
            "At depth `source`, each with an empty cache, the listing of the index included. "
            "Seconds are by the clock of a machine that others used heavily, with an index near "
            "by; farther from it, bytes decide.",
            "",
            *table(head, rows),
            "",
            *beside,
        ],
    )


if __name__ == "__main__":
    main()
