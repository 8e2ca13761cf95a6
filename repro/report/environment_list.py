"""Tables of environments."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..check.environments.pruning import Pruned
from ..check.environments.shelf import Standing
from ..escape import printable
from .run_list import size


def print_environments(out: Console, root: Path, shown: Sequence[Standing], total: int) -> None:
    """The environments of a folder; `total` is the length of all files there, each counted once."""
    if not shown:
        out.print(f"no environments in {printable(str(root))}", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    for column in ("environment", "build", "Python", "used", "state"):
        table.add_column(column, no_wrap=column == "environment")
    table.add_column("size", justify="right")
    for one in shown:
        kept = one.kept
        words = (kept.name, kept.asked, kept.python_version, _time(kept.used), _state(one))
        table.add_row(*(printable(word) for word in words), size(one.size))
    out.print(table)
    out.print(f"together {size(total)}, with uv's cache; files that are shared are counted once")


def print_pruned(out: Console, pruned: Pruned) -> None:
    """What was removed, and what is left."""
    count = len(pruned.gone)
    for kept in pruned.gone:
        out.print(f"removed {printable(kept.name)}", soft_wrap=True)
    for kept in pruned.held:
        out.print(f"in use, and stays: {printable(kept.name)}", soft_wrap=True)
    freed = size(max(0, pruned.before - pruned.after))
    out.print(
        f"removed {count} environment{'s'[: count != 1]}, {freed}; {size(pruned.after)} are left",
        soft_wrap=True,
    )


def environments_json(shown: Sequence[Standing], total: int) -> dict[str, Any]:
    """The same as one JSON object."""
    return {
        "schema": "specrepro/environments@1",
        "bytes": total,
        "environments": [
            {
                "name": one.kept.name,
                "path": str(one.kept.path),
                "python": str(one.kept.environment.python),
                "python_version": one.kept.python_version,
                "package": one.kept.environment.package,
                "version": one.kept.environment.version,
                "commit": one.kept.environment.commit,
                "made": one.kept.made,
                "used": _time(one.kept.used),
                "in_use": one.in_use,
                "bytes": one.size,
                "notes": list(one.kept.environment.notes),
            }
            for one in shown
        ],
    }


def pruned_json(pruned: Pruned) -> dict[str, Any]:
    """What was removed, as one JSON object."""
    return {
        "schema": "specrepro/environments-pruned@1",
        "removed": [kept.name for kept in pruned.gone],
        "in_use": [kept.name for kept in pruned.held],
        "bytes_before": pruned.before,
        "bytes_after": pruned.after,
    }


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _state(one: Standing) -> str:
    return "in use" if one.in_use else "free"
