"""What a search among releases costs, beside downloading the wheels that it tries with pip.

python tests/benchmarks/bisect_bytes.py

Each search begins with an empty cache. After each of the first WITH_PIP, pip downloads the releases
that it tried and none before it did, without their dependencies; each is deleted again.
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

WITH_PIP = 2  # searches; their releases are 4 GB
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

UNTOLD = ("–",) * 5  # of searches whose wheels were not downloaded


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


def pip(ours: Taken, received: int, theirs: list[Taken]) -> tuple[str, ...]:
    """What pip took beside a search, and the ratios."""
    size, seconds = sum(w.size for w in theirs), sum(w.seconds for w in theirs)
    return (
        f"{size / 1e9:.2f}",
        f"{seconds:.0f}",
        f"{sum(w.cpu for w in theirs):.0f}",
        f"{size / received:.0f}",
        f"{seconds / ours.seconds:.1f}",
    )


def main() -> None:
    wheels: dict[str, Taken] = {}
    rows = []
    for number, (arguments, known) in enumerate(SEARCHES):
        record, took = search(arguments)
        found = record["result"]["build"] or "none"
        assert found == known, f"{arguments}: {found}, not {known}"
        tried = sorted({row["build"] for row in record["trials"]})
        for version in tried if number < WITH_PIP else ():
            if version not in wheels:
                wheels[version] = downloaded(version)
                print(version, wheels[version], flush=True)
        requests, received = record["traffic"]["requests"], record["traffic"]["bytes"]
        rows.append(
            (
                f"`{arguments}`",
                found,
                str(len(tried)),
                str(requests),
                f"{received / 1e6:.1f}",
                f"{took.seconds:.1f}",
                f"{took.cpu:.1f}",
                *(pip(took, received, [wheels[v] for v in tried]) if number < WITH_PIP else UNTOLD),
            )
        )
        print("|".join(rows[-1]), flush=True)
    head = (
        "`specrepro bisect` …", "boundary", "releases", "requests", "MB", "s", "CPU s",
        "pip: GB", "s", "CPU s", "bytes, pip ÷ ours", "seconds, pip ÷ ours",
    )  # fmt: skip
    write(
        "bisect-bytes",
        "Searching releases without installing them",
        ["python", "tests/benchmarks/bisect_bytes.py"],
        [
            "At depth `source`, each with an empty cache, the listing of the index included. After "
            f"each of the first {WITH_PIP}, `pip download --no-deps` fetched the wheels of the "
            "releases that were tried, each once in this run: of one that both tried, what it took "
            "is counted in both. Of the others nothing was downloaded, and nothing is said. "
            "Seconds are by the clock of a machine that others used heavily, with an index near "
            "by; farther from it, bytes decide.",
            "",
            *table(head, rows),
        ],
    )


if __name__ == "__main__":
    main()
