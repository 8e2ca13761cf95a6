"""Table of what a cache of builds holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..check.cache_pruning import Pruned, Shelved
from ..escape import printable
from .run_list import size

SAYS = {
    "files": "files of builds, checked",
    "tails": "ends of wheels: what they hold, and RECORD",
    "lengths": "how long an end was",
    "listings": "pages of indexes",
    "kernels": "kernels, compiled",
    "sdists": "which files an sdist has",
}


def print_cache(out: Console, folder: Path, found: Sequence[Shelved]) -> None:
    """Entries and bytes of each kind."""
    if not found:
        out.print(f"nothing in {printable(str(folder))}", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("kind", no_wrap=True)
    table.add_column("entries", justify="right")
    table.add_column("size", justify="right")
    table.add_column("what it is")
    for one in found:
        table.add_row(one.kind, str(one.entries), size(one.bytes), SAYS[one.kind])
    out.print(table)
    out.print(f"together {size(sum(one.bytes for one in found))}")


def print_pruned(out: Console, pruned: Pruned) -> None:
    """What was removed, and what is left."""
    if pruned.in_use:
        out.print("in use, and stays: another process reads from it")
    one = "entry" if pruned.gone == 1 else "entries"
    freed = size(pruned.before - pruned.after)
    out.print(f"removed {pruned.gone} {one}, {freed}; {size(pruned.after)} are left")


def cache_json(folder: Path, found: Sequence[Shelved]) -> dict[str, Any]:
    """The same as one JSON object."""
    return {
        "schema": "specrepro/cache@1",
        "path": str(folder),
        "bytes": sum(one.bytes for one in found),
        "kinds": [{"kind": one.kind, "entries": one.entries, "bytes": one.bytes} for one in found],
    }


def pruned_json(pruned: Pruned) -> dict[str, Any]:
    """What was removed, as one JSON object."""
    return {
        "schema": "specrepro/cache-pruned@1",
        "removed": pruned.gone,
        "in_use": pruned.in_use,
        "bytes_before": pruned.before,
        "bytes_after": pruned.after,
    }
