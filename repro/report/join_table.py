"""What every instrument said of one fault, of a run in a terminal; contradictions first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..escape import printable

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
    told: dict[tuple[str, str, bool | None, str], list[str]] = {}
    for row in joined["rows"]:
        said = " · ".join(part for part in (row["located"], row["note"]) if part)
        key = row["instrument"], row["observed"], row["agrees"], said
        told.setdefault(key, []).append(row["lane"])
    for (name, observed, agrees, said), lanes in told.items():
        others = [lane for lane in lanes if lane not in name]
        name += f" ({', '.join(others)})" if others else ""
        table.add_row(
            Text(printable(name)),
            Text(printable(observed)),
            AGREES[agrees],
            Text(printable(said or "–")),
        )
    parts: list[RenderableType] = [table]
    if joined["first_writer"]:
        parts.append(Text(printable(f"first writer: {joined['first_writer']}"), "dim"))
    return Group(*parts)
