"""Tables of stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..escape import printable
from ..store import StoredRun


def print_runs(out: Console, folder: Path, runs: Sequence[StoredRun]) -> None:
    """The runs of a folder."""
    if not runs:
        out.print(f"no runs in {printable(str(folder))}", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("run", "command", "started", "state"):
        table.add_column(column, no_wrap=column == "run")
    table.add_column("size", justify="right")
    for run in runs:
        words = (run.id, run.command, run.started, run.state)
        table.add_row(*(printable(word) for word in words), size(run.size))
    out.print(table)


def print_pruned(out: Console, runs: Sequence[StoredRun]) -> None:
    """What was removed."""
    total = size(sum(run.size for run in runs))
    out.print(f"removed {len(runs)} run{'s'[: len(runs) != 1]}, {total}")


def runs_json(runs: Sequence[StoredRun]) -> dict[str, Any]:
    """The same as one JSON object."""
    return {
        "schema": "specrepro/runs@1",
        "runs": [
            {
                "id": run.id,
                "path": str(run.path),
                "command": run.command,
                "started": run.started,
                "finished": run.finished,
                "state": run.state,
                "bytes": run.size,
            }
            for run in runs
        ],
    }


def size(count: int) -> str:
    """A number of bytes for a reader."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
