"""Several builds of a check as a matrix: a row a build, a column a defect, and for what their
kernels did a column a sort of finding. Fits 80 columns; names stand below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ..escape import printable
from .check_findings import of_builds

Record = Mapping[str, Any]

VERDICT_STYLE = {
    "AFFECTED": "bold red",
    "NOT AFFECTED": "bold green",
    "UNTESTABLE": "bold yellow",
}
STATE_STYLE = {"present": "red", "absent": "green", "unknown": "yellow"}
MARKS = {"present": "yes", "absent": "–", "unknown": "?"}
FOUND, CLEAN = "×", "–"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def matrix(builds: Sequence[Record]) -> Table:
    """The matrix. Findings are lettered and defects numbered as in `legend`."""
    table = Table(
        box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 1, 0, 0)
    )
    table.add_column("build", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    names, sorts = _names(builds), list(of_builds(list(builds)))[: len(LETTERS)]
    for number, _ in enumerate(names, 1):
        table.add_column(str(number), no_wrap=True, justify="center", min_width=3)
    for letter, _ in zip(LETTERS, sorts, strict=False):
        table.add_column(letter, no_wrap=True, justify="center")
    table.add_column("acts by default", overflow="fold")
    for build in builds:
        states = {s["defect"]: s for s in build["defects"]}
        verdict = str(build["verdict"])
        cells = [Text(printable(build["version"])), Text(verdict, VERDICT_STYLE.get(verdict, ""))]
        for name in names:
            state = str(states[name]["state"]) if name in states else "unknown"
            cells.append(Text(MARKS.get(state, "?"), STATE_STYLE.get(state, "")))
        for probe, _, kept in sorts:
            cells.append(_cell(build, probe, any(known is build for known, _ in kept)))
        cells.append(Text(printable(_by_default(build))))
        table.add_row(*cells)
    return table


def legend(builds: Sequence[Record]) -> str:
    """What the numbers and letters of the matrix stand for."""
    counted = {s["defect"]: s["counted"] for b in builds for s in b["defects"]}
    lines = [
        f"{number}  {printable(name)}" + ("" if counted[name] else " (not counted)")
        for number, name in enumerate(_names(builds), 1)
    ]
    sorts = list(of_builds(list(builds)))
    for letter, (probe, kind, kept) in zip(LETTERS, sorts, strict=False):
        build, one = kept[0]
        source = one["source"]
        place = f", in {build['version']} at {source['file']}:{source['line']}" if source else ""
        lines.append(printable(f"{letter}  {probe}: {kind}{place}"))
    if sorts:
        lines.append(f"{FOUND} found   {CLEAN} the kernel ran without   ? not known")
    if len(sorts) > len(LETTERS):
        lines.append(f"{len(sorts) - len(LETTERS)} more sorts of findings: --json has them")
    return "\n".join(lines)


def _cell(build: Record, probe: str, found: bool) -> Text:
    if found:
        return Text(FOUND, "red")
    values = [row["value"] for row in build["evidence"] if row["probe"] == probe]
    known = bool(values) and values[0] is not None
    return Text(CLEAN, "green") if known else Text("?", "yellow")


def _by_default(build: Record) -> str:
    if not build["defects"]:
        return "; ".join(build["reasons"])
    models = {m: None for a in build["exposure"] if a["default"] for m in a["models"]}
    unknown = any(a["default"] is None for a in build["exposure"])
    return ", ".join(models) or ("not known" if unknown else "")


def _names(builds: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(str(s["defect"]) for b in builds for s in b["defects"]))
