"""Wall and CPU time of `specrepro run cases/`: all of it, a case alone, a lane alone.

python tests/benchmarks/cases.py [ROUNDS]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from children import alternately
from page import table, write

SPECREPRO = str(Path(sys.executable).with_name("specrepro"))
CASES = Path(__file__).parents[2] / "cases"
LANES = ("reference", "emulator")
# a lane that executes no kernels is not enough for a verdict: 125
STATUSES = (0, 125)


def main(arguments: list[str]) -> None:
    rounds = int(arguments[0]) if arguments else 5
    files = sorted(CASES.glob("*.yaml"))
    with tempfile.TemporaryDirectory() as runs:
        options = ["--runs", runs, "--quiet"]
        run = [SPECREPRO, "run", *options]
        commands = {"run cases/": [*run, str(CASES)]}
        commands |= {f"run cases/{file.name}": [*run, str(file)] for file in files}
        commands |= {f"run cases/ --lane {x}": [*run, str(CASES), "--lane", x] for x in LANES}
        record = recorded([SPECREPRO, "run", str(CASES), "--runs", runs, "--json"])
        costs = alternately(commands, rounds, STATUSES)
    whole = costs["run cases/"]
    rows = [
        (f"`specrepro {name}`", f"{c.wall:.2f}", f"{c.cpu:.2f}", f"{c.cpu / whole.cpu:.2f}")
        for name, c in costs.items()
    ]
    verdicts = ", ".join(f"{case['id']} {case['verdict']}" for case in record["cases"])
    write(
        "cases",
        "The shipped cases",
        ["python", "tests/benchmarks/cases.py", *arguments],
        [
            f"Least of {rounds}, run alternately, caches warm: {verdicts}.",
            "",
            *table(("command", "wall s", "CPU s", "CPU ratio"), rows),
            "",
            "Checks that were on:",
            "",
            *(f"- {line}" for line in checks(record)),
        ],
    )


def recorded(command: list[str]) -> dict[str, Any]:
    """The JSON of one run, in which every case must have come out as its file says."""
    record: dict[str, Any] = json.loads(subprocess.check_output(command))
    return record


def checks(record: dict[str, Any]) -> list[str]:
    """For each case and lane that ran, the access checks its evidence names, in order."""
    found = {
        f"{case['id']}, {trial['lane']}: {evidence['detail']}"
        for case in record["cases"]
        for trial in case["trials"]
        for evidence in trial["evidence"]
        if evidence["source"] == "access checks"
    }
    return sorted(found)


if __name__ == "__main__":
    main(sys.argv[1:])
