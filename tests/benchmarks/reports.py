"""What a report of a large run costs: python tests/benchmarks/reports.py [--trials 10000]

Takes a stored run of one case, repeats its trials, and writes every format in a process of its own.
Prints CPU seconds, peak memory and size.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CODE = "import sys; from specrepro.cli import main; main()"
MEASURED = """
import resource, sys
from specrepro.cli import main
try:
    main()
except SystemExit:
    pass
usage = resource.getrusage(resource.RUSAGE_SELF)
print(f"{usage.ru_utime + usage.ru_stime:.2f} {usage.ru_maxrss / 1024:.0f}", file=sys.stderr)
"""
FORMATS = ("markdown", "html", "json", "junit", "sarif")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    count = parser.parse_args().trials
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        words = ["run", "mtp-tail-overflow", "--runs", folder, "-q"]
        subprocess.run([sys.executable, "-c", CODE, *words], check=True, capture_output=True)
        path = runs / "latest" / "run.json"
        record = json.loads(path.read_text())
        case = record["cases"][0]
        trials = case["trials"]
        case["trials"] = [
            {**trials[n % len(trials)], "point": {**trials[n % len(trials)]["point"], "seed": n}}
            for n in range(count)
        ]
        path.write_text(json.dumps(record))
        print(f"{count} trials, run.json of {path.stat().st_size / 1e6:.1f} MB")
        for name in FORMATS:
            target = runs / name
            done = subprocess.run(
                [sys.executable, "-c", MEASURED, "report", "--runs", folder, "--format", name,
                 "-o", str(target), "-q"],
                check=True, capture_output=True, text=True, env=os.environ,
            )  # fmt: skip
            seconds, memory = done.stderr.split()[-2:]
            print(
                f"{name:9} {seconds} s of CPU  {memory} MiB  {target.stat().st_size / 1e6:.2f} MB"
            )


if __name__ == "__main__":
    main()
