"""What reading large logs costs beside `rg -c` with the same literals, and reading many of them.

python tests/benchmarks/diagnose_throughput.py [MEGABYTES] [LOGS] [ROUNDS]

Needs ripgrep as `rg`. Logs are made up (synthetic_logs.py): eight workers, requests, measurements,
a failure at the end.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import synthetic_logs
from children import alternately
from page import table, write

from specrepro.repro.diagnose.read import read
from specrepro.repro.diagnose.reading.literals import is_fast
from specrepro.repro.diagnose.reading.registry import literals

READ = (
    "import sys, resource; from pathlib import Path; from specrepro.repro.diagnose.read "
    "import read;"
    "r = read([Path(sys.argv[1])]); m = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
    "print(len(r.facts), r.sources[0].lines, m // 1024)"
)
SMALL = 200_000
# different logs of the small size; each is read as often as it takes
DIFFERENT = 50


def facts_of(path: Path) -> int:
    """A log is read in a process of the pool."""
    return len(read([path]).facts)


def many(folder: Path, logs: int) -> tuple[float, float, int]:
    """Wall and CPU seconds of two processes for `logs` logs of SMALL bytes, and their facts."""
    paths = [folder / f"small{number}.log" for number in range(DIFFERENT)]
    for number, path in enumerate(paths):
        synthetic_logs.write(path, SMALL, number)
    asked = [paths[number % DIFFERENT] for number in range(logs)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        facts = sum(pool.map(facts_of, asked, chunksize=20))
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall, cpu, facts


def main(arguments: list[str]) -> None:
    megabytes, logs, rounds = (
        int(a) for a in (*arguments, *("1000", "5000", "3")[len(arguments) :])
    )
    rg = shutil.which("rg")
    if rg is None:
        raise SystemExit("rg is not on PATH; ripgrep is what the reading is compared with")
    if not is_fast():
        raise SystemExit("ahocorasick-rs is missing: pip install '.[logs]'")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, words = folder / "large.log", folder / "literals"
        synthetic_logs.write(log, megabytes * 1_000_000, 1)
        words.write_bytes(b"".join(literal + b"\n" for literal in literals()))
        search = [rg, "-c", "--threads", "1", "-F", "-f", str(words), str(log)]
        ours = [sys.executable, "-c", READ, str(log)]
        costs = alternately({"rg": search, "read": ours}, rounds)
        facts, lines, memory = subprocess.check_output(ours, text=True).split()
        hits = subprocess.check_output(search, text=True).strip()
        log.unlink()
        wall, cpu, found = many(folder, logs)
    ratio = costs["read"].cpu / costs["rg"].cpu
    rows = [
        (f"`rg -c -F -f literals`, {len(literals())} literals", f"{costs['rg'].cpu:.2f}", "1.00"),
        ("reading of `specrepro diagnose`", f"{costs['read'].cpu:.2f}", f"{ratio:.2f}"),
    ]
    write(
        "diagnose-throughput",
        "Reading logs",
        ["python", "tests/benchmarks/diagnose_throughput.py", *arguments],
        [
            f"A made-up log of {megabytes} MB with {int(lines):,} lines of ten processes, "
            f"{hits} of "
            f"them with a literal: reading takes {ratio:.1f} times the CPU time of rg on one core "
            f"(least of {rounds}, run alternately; the bound is 10), and {memory} MB of "
            f"memory (the bound is 200). {facts} facts were kept.",
            "",
            *table(("command", "CPU s", "ratio"), rows),
            "",
            f"{logs:,} logs of {SMALL // 1000} kB, each with a failure of eight workers, read by "
            f"two processes: {wall:.1f} s and {cpu:.1f} s of CPU time, {found:,} facts (the bound "
            f"is 60 s on two free cores; {DIFFERENT} different logs, read again and again). "
            "Matching and the page are not in it.",
        ],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
