"""What short commands cost beside `python -c "import typer, rich"`, in CPU time.

python tests/benchmarks/startup.py [ROUNDS]

Bytecode is kept in a scratch folder, whatever the environment says of it, as an installed package
has it; the last row is what a diagnosis costs where none may be kept (PYTHONDONTWRITEBYTECODE).
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from children import alternately
from page import table, write

SMALL = Path(__file__).parents[1] / "diagnose" / "corpus" / "plan-buffer-race" / "clean.log"
SPECREPRO = str(Path(sys.executable).with_name("specrepro"))
BASE = 'python -c "import typer, rich"'
VERSION, DIAGNOSE = "specrepro --version", "specrepro diagnose small.log"
COMMANDS = {
    BASE: [sys.executable, "-c", "import typer, rich"],
    VERSION: [SPECREPRO, "--version"],
    "specrepro check --help": [SPECREPRO, "check", "--help"],
    "specrepro --help": [SPECREPRO, "--help"],
    DIAGNOSE: [SPECREPRO, "diagnose", str(SMALL)],
    "specrepro diagnose small.log --json": [SPECREPRO, "diagnose", str(SMALL), "--json"],
    "specrepro list": [SPECREPRO, "list"],
    'python -c ""': [sys.executable, "-c", ""],
}
UNKEPT = f"{DIAGNOSE}, no bytecode kept"


def main(arguments: list[str]) -> None:
    rounds = int(arguments[0]) if arguments else 15
    with tempfile.TemporaryDirectory() as scratch:
        kept = {"PYTHONPYCACHEPREFIX": str(Path(scratch, "bytecode"))}
        runs = {"XDG_STATE_HOME": str(Path(scratch, "state"))}
        os.environ.update(kept | runs)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        unkept = ["env", "-u", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE=1"]
        costs = alternately({**COMMANDS, UNKEPT: [*unkept, *COMMANDS[DIAGNOSE]]}, rounds)
    base = costs[BASE].cpu
    rows = [
        (f"`{name}`", f"{c.cpu * 1000:.0f}", f"{c.cpu / base:.2f}") for name, c in costs.items()
    ]
    write(
        "startup",
        "Start-up",
        ["python", "tests/benchmarks/startup.py", *arguments],
        [
            f"`{VERSION}` takes {costs[VERSION].cpu / base:.2f} times the CPU time of importing "
            f"typer and rich, `specrepro diagnose` of a log of {SMALL.stat().st_size / 1000:.0f} "
            f"kB {costs[DIAGNOSE].cpu / base:.2f} times (least of {rounds}, run alternately; the "
            "bound is 3). Bytecode is kept but in the last row: in an editable installation "
            "under PYTHONDONTWRITEBYTECODE Python compiles every module of specrepro at every "
            "start.",
            "",
            *table(("command", "CPU ms", "ratio"), rows),
        ],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
