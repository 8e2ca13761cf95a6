"""What `specrepro doctor` found, in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..escape import printable

MARKS = {"ok": ("✓", "green"), "bad": ("✗", "red"), "unknown": ("?", "yellow")}


def print_doctor(out: Console, record: Mapping[str, Any], *, quiet: bool = False) -> None:
    """A row a check; with `quiet` only those that are not well."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in record["checks"]:
        if quiet and check["state"] == "ok":
            continue
        mark, style = MARKS[check["state"]]
        said = Text(printable(str(check["said"])))
        if check["serves"] and check["state"] != "ok":
            said.append(f"   for: {printable(str(check['serves']))}", "dim")
        if check["hint"]:
            said.append("\nhint: ", "cyan").append(printable(str(check["hint"])))
        table.add_row(Text(mark, style), printable(str(check["name"])), said)
    out.print(table)
