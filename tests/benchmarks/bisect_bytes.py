"""What a search among releases costs, beside downloading the wheels that it tries.

python tests/benchmarks/bisect_bytes.py

Each search begins with an empty cache. The wheels are not downloaded: their sizes are those that
the index gives of the files pip would take, without their dependencies.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from page import table, write

from specrepro.repro.bisection.candidates import wheel_sizes
from specrepro.repro.check.builds import Builds

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


def search(arguments: str) -> tuple[dict[str, Any], float]:
    """The record of a search with an empty cache, and the CPU seconds it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        code = "from specrepro.cli import main; main()"
        command = [sys.executable, "-c", code, "bisect", *arguments.split(), "--json"]
        command += ["--cache", f"{folder}/cache", "--runs", f"{folder}/runs"]
        out = subprocess.run(command, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    record: dict[str, Any] = json.loads(out)
    return record, cpu


def main() -> None:
    with tempfile.TemporaryDirectory() as cache, Builds(cache=Path(cache)) as builds:
        files = builds.files()
    rows = []
    for arguments, known in SEARCHES:
        record, cpu = search(arguments)
        found = record["result"]["build"] or "none"
        assert found == known, f"{arguments}: {found}, not {known}"
        tried = {row["build"] for row in record["trials"]}
        wheels = wheel_sizes(files, "vllm", tried)
        requests, received = record["traffic"]["requests"], record["traffic"]["bytes"]
        rows.append(
            (
                f"`{arguments}`",
                found,
                str(len(tried)),
                str(requests),
                f"{received / 1e6:.1f}",
                f"{wheels / 1e9:.2f}",
                f"{wheels / received:.0f}",
                f"{cpu:.1f}",
            )
        )
    head = (
        "`specrepro bisect` …", "boundary", "releases tried", "requests", "MB read",
        "GB of their wheels", "wheels ÷ read", "CPU s",
    )  # fmt: skip
    write(
        "bisect-bytes",
        "Searching releases without installing them",
        ["python", "tests/benchmarks/bisect_bytes.py"],
        [
            "At depth `source`, each with an empty cache, the listing of the index included. The "
            "wheels were not downloaded: their sizes are the index's, of the files that pip takes, "
            "without dependencies.",
            "",
            *table(head, rows),
        ],
    )


if __name__ == "__main__":
    main()
