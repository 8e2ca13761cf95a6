"""Wall and CPU time of `specrepro run cases/`: all of it, each case alone, with both lanes and one.

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
# one lane alone may not be enough for a verdict: 125
STATUSES = (0, 125)


def main(arguments: list[str]) -> None:
    rounds = int(arguments[0]) if arguments else 2
    files = sorted(CASES.glob("*.yaml"))
    with tempfile.TemporaryDirectory() as runs:
        options = ["--runs", runs, "--quiet"]
        run = [SPECREPRO, "run", *options]
        commands = {"run cases/": [*run, str(CASES)]}
        commands |= {f"run cases/{file.name}": [*run, str(file)] for file in files}
        # the reference is the rest
        commands |= {
            f"run cases/{file.name} --lane emulator": [*run, str(file), "--lane", "emulator"]
            for file in files
        }
        # this run warms the caches of all others
        record = recorded([SPECREPRO, "run", str(CASES), "--runs", runs, "--json"])
        costs = alternately(commands, rounds, STATUSES, warm=True)
    whole = costs["run cases/"]
    trials = {case["id"]: len(case["trials"]) for case in record["cases"]}
    rows = [
        (f"`specrepro {name}`", f"{c.wall:.2f}", f"{c.cpu:.2f}", f"{c.cpu / whole.cpu:.2f}")
        for name, c in costs.items()
    ]
    verdicts = ", ".join(
        f"{case['id']} {case['verdict']} ({trials[case['id']]} trials)" for case in record["cases"]
    )
    write(
        "cases",
        "The shipped cases",
        ["python", "tests/benchmarks/cases.py", *arguments],
        [
            f"Least of {rounds}, run alternately, caches warm: {verdicts}.",
            "Wall time well above CPU time is other work that the machine did meanwhile.",
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
