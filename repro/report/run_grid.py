"""The grid of a sweep over one or two parameters, a mark a point, for variants that fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..escape import printable

MARKS = {"fault": ("█", "magenta"), "clean": ("·", "green"), "skipped": ("–", "dim")}
UNKNOWN = ("?", "yellow")


def sweep_grid(case: Mapping[str, Any]) -> RenderableType | None:
    """Grids of the lane that executes kernels, or of the reference; None without a sweep."""
    swept: Mapping[str, list[Any]] = case["sweep"]
    if not swept:
        return None
    if len(swept) > 2:
        return Text(f"sweep over {', '.join(swept)}: see --json", "dim")
    lane = "emulator" if "emulator" in case["lanes"] else case["lanes"][0]
    trials = [trial for trial in case["trials"] if trial["lane"] == lane]
    grids: list[RenderableType] = []
    for variant in dict.fromkeys(trial["variant"] for trial in trials):
        mine = [trial for trial in trials if trial["variant"] == variant]
        if any(trial["status"] != "clean" for trial in mine):
            grids.append(_grid(variant, swept, mine, case["named"]))
        else:
            grids.append(Text(f"{printable(variant)}: clean at all {len(mine)} points", "dim"))
    legend = "█ fault  · clean  ? unknown  ✗ not as expected"
    return Group(*grids, Text(f"{legend}   (lane {lane})", "dim"))


def _grid(
    variant: str,
    swept: Mapping[str, list[Any]],
    trials: list[Mapping[str, Any]],
    named: Mapping[str, Any],
) -> Table:
    across, *down = swept
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column(printable(f"{variant}: {across} →"), style="dim")
    for value in swept[across]:
        table.add_column(printable(str(value)), justify="center")
    others = {k: v for k, v in named.items() if k not in swept}
    for value in swept[down[0]] if down else [None]:
        cells = []
        for x in swept[across]:
            wanted = {**others, across: x, **({down[0]: value} if down else {})}
            found = next((t for t in trials if t["point"] == wanted), None)
            cells.append(_mark(found))
        table.add_row(printable(f"{down[0]} {value}") if down else "", *cells)
    return table


def _mark(trial: Mapping[str, Any] | None) -> Text:
    if trial is None:
        return Text(" ")
    mark, style = MARKS.get(trial["status"], UNKNOWN)
    text = Text(mark, style)
    if trial["status"] != "skipped" and not trial["as_expected"]:
        text.append("✗", "bold red")
    return text
