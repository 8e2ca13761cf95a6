"""What it costs to ask releases on the index: requests and bytes of each case, and all of them.

python tests/benchmarks/wheels.py [VERSION…]

Each case reads each release with an empty cache. Then every case is checked at depth source over
all releases of a range, one after the other, with a cache they share: the lifted functions run in
their sandboxes, and are judged.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

from page import table, write

from specrepro.repro.case import LoadedCase, load_cases
from specrepro.repro.check import survey
from specrepro.repro.check.builds import Builds
from specrepro.repro.check.probes import load
from specrepro.repro.check.releases import pick
from specrepro.repro.check.source import members
from specrepro.repro.check.source_depth import SourceDepth, probes

RELEASES = ("0.11.0", "0.19.1", "0.28.0", "0.33.0")
RANGE = "0.11.0..0.33.0"
CASES = Path(__file__).parents[2] / "cases"


def cpu() -> float:
    """Seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def reading(case: LoadedCase, version: str) -> tuple[int, int, int, float]:
    """Files, requests, bytes received, and the wheel's size over them, with an empty cache."""
    part = case.case.check
    assert part is not None
    with tempfile.TemporaryDirectory() as cache, Builds(cache=Path(cache)) as builds:
        tree = builds.open(version)
        asked = [load(name) for name in probes(part.records(), part.also)]
        names = members(tree.names(), asked)
        tree.fetch(names)
        for name in names:
            tree.read(name)
        requests, received = builds.traffic
        size = pick(builds.files(), "vllm", version).size or 0
    return len(names), requests, received, size / received


def scan(cases: list[LoadedCase]) -> str:
    """Check every case over the range."""
    with tempfile.TemporaryDirectory() as folder, Builds(cache=Path(folder, "cache")) as builds:
        began = cpu()
        releases = builds.versions(RANGE)
        verdicts: dict[str, int] = {}
        for case in cases:
            question = survey.questions(case, (), {}, False)
            report = survey.check(
                case, releases, builds, question, Path(folder, "runs"), SourceDepth()
            )
            for row in report.record["builds"]:
                verdicts[row["verdict"]] = verdicts.get(row["verdict"], 0) + 1
        seconds = cpu() - began
        requests, received = builds.traffic
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return (
        f"{len(cases)} cases over {RANGE}, {len(releases)} releases, in one session with one "
        f"cache, empty at first: {requests} requests, {received / 1e6:.1f} MB, {seconds:.1f} s of "
        f"CPU, children included ({said})."
    )


def main(arguments: list[str]) -> None:
    cases = load_cases([str(CASES)])
    rows = []
    for version in arguments or RELEASES:
        for case in cases:
            files, requests, received, ratio = reading(case, version)
            rows.append(
                (version, case.case.id, str(files), str(requests), f"{received / 1e6:.2f}",
                 f"{ratio:.0f}")
            )  # fmt: skip
    write(
        "wheels",
        "Asking releases",
        ["python", "tests/benchmarks/wheels.py", *arguments],
        [
            "With an empty cache, the listing of the index included. Every file is checked against "
            "its crc and RECORD.",
            "",
            *table(("release", "case", "files", "requests", "MB read", "wheel ÷ read"), rows),
            "",
            scan(cases),
        ],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
