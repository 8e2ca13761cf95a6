"""What `--version` and `diagnose` of a small log cost beside `python -c "import typer, rich"`, in
CPU time.

python tests/benchmarks/startup.py [ROUNDS]
"""

from __future__ import annotations

import sys
from pathlib import Path

from children import alternately
from page import table, write

SMALL = Path(__file__).parents[1] / "diagnose" / "corpus" / "plan-buffer-race" / "clean.log"
SPECREPRO = str(Path(sys.executable).with_name("specrepro"))
COMMANDS = {
    'python -c "import typer, rich"': [sys.executable, "-c", "import typer, rich"],
    "specrepro --version": [SPECREPRO, "--version"],
    "specrepro diagnose small.log": [SPECREPRO, "diagnose", str(SMALL)],
    'python -c ""': [sys.executable, "-c", ""],
}


def main(arguments: list[str]) -> None:
    rounds = int(arguments[0]) if arguments else 15
    costs = alternately(COMMANDS, rounds)
    base, ours, small, _ = (costs[name].cpu for name in COMMANDS)
    rows = [
        (f"`{name}`", f"{c.cpu * 1000:.0f}", f"{c.cpu / base:.2f}") for name, c in costs.items()
    ]
    write(
        "startup",
        "Start-up",
        ["python", "tests/benchmarks/startup.py", *arguments],
        [
            f"`specrepro --version` takes {ours / base:.2f} times the CPU time of importing typer "
            f"and rich, `specrepro diagnose` of a log of {SMALL.stat().st_size / 1000:.0f} kB "
            f"{small / base:.2f} times (least of {rounds}, run alternately; the bound is 3).",
            "",
            *table(("command", "CPU ms", "ratio"), rows),
        ],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
