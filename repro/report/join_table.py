"""What every instrument said of one fault, of a run in a terminal; contradictions first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..escape import printable
from .instruments import instruments

Record = Mapping[str, Any]
AGREES = {True: Text("✓", "green"), False: Text("✗", "bold red"), None: Text("–", "dim")}


def join_section(case: Record) -> RenderableType | None:
    """Instrument by what it observed and located, and whether that is the reference's; None where
    nothing ran on a device."""
    joined = case.get("join")
    if not joined or not joined["rows"]:
        return None
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("instrument")
    table.add_column("observed")
    table.add_column("agrees")
    table.add_column("located", overflow="fold")
    for row in instruments(case):
        table.add_row(
            Text(printable(row.name)),
            Text(printable(row.observed)),
            AGREES[row.agrees],
            Text(printable(row.said)),
        )
    parts: list[RenderableType] = [table]
    if joined["first_writer"]:
        parts.append(Text(printable(f"first writer: {joined['first_writer']}"), "dim"))
    return Group(*parts)
