"""What it costs to read the sources that probes look at, out of wheels on the index.

python tests/benchmarks/wheels.py [VERSION…]

Each release is read with an empty cache; then all of a range, one after the other, with a cache
they share.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from page import table, write

from specrepro.repro.check.builds import Builds
from specrepro.repro.check.releases import pick
from specrepro.repro.check.tree import Tree

RELEASES = ("0.11.0", "0.19.1", "0.28.0", "0.33.0")
RANGE = "0.11.0..0.33.0"
WANTED = (
    "vllm/v1/core/",
    "vllm/v1/spec_decode/",
    "vllm/v1/worker/gpu/",
    "vllm/v1/worker/gpu_model_runner.py",
    "vllm/v1/sample/",
    "vllm/config/",
    "vllm/engine/arg_utils.py",
)


def read(tree: Tree) -> tuple[int, int]:
    """Number of files and of their bytes."""
    names = [n for n in tree.names() if n.endswith(".py") and n.startswith(WANTED)]
    tree.fetch(names)
    return len(names), sum(len(tree.read(name)) for name in names)


def main(arguments: list[str]) -> None:
    rows = []
    for version in arguments or RELEASES:
        with tempfile.TemporaryDirectory() as cache, Builds(cache=Path(cache)) as builds:
            began = time.process_time()
            files, content = read(builds.open(version))
            cpu = time.process_time() - began
            requests, received = builds.traffic
            size = pick(builds.files(), "vllm", version).size
        rows.append(
            (
                version,
                str(files),
                f"{content / 1e6:.2f}",
                str(requests),
                f"{received / 1e6:.2f}",
                f"{(size or 0) / received:.0f}",
                f"{cpu:.2f}",
            )
        )
    with tempfile.TemporaryDirectory() as cache, Builds(cache=Path(cache)) as builds:
        began = time.process_time()
        releases = builds.versions(RANGE)
        for version in releases:
            read(builds.open(version))
        cpu = time.process_time() - began
        requests, received = builds.traffic
    write(
        "wheels",
        "Reading sources out of wheels",
        ["python", "tests/benchmarks/wheels.py", *arguments],
        [
            "With an empty cache, the listing of the index included. Every file is checked against "
            "its crc and RECORD.",
            "",
            *table(
                (
                    "release",
                    "files",
                    "MB of source",
                    "requests",
                    "MB read",
                    "wheel ÷ read",
                    "CPU s",
                ),
                rows,
            ),
            "",
            f"{RANGE}, {len(releases)} releases in one session with one cache: {requests} "
            f"requests, {received / 1e6:.1f} MB, {cpu:.1f} s of CPU.",
        ],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
