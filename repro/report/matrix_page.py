"""Hypotheses against the experiments of a report: the matrix, what is out, what to try next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..escape import printable

Record = Mapping[str, Any]

WORDS = {"illegal_access": "illegal", "wrong_output": "wrong", "right": "right"}
SHOWN = 3  # experiments proposed


def matrix_section(case: Record) -> Group | None:
    """The section of a case's page; None for a case without hypotheses."""
    said = case["hypotheses"]
    if not said:
        return None
    controls = [c for c in said["controls"] if c["reported"] or c["facts"]]
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="dim", min_width=7)
    rows.add_column(overflow="fold")
    for control in controls:
        rows.add_row(printable(control["id"]), printable(control["title"]))
    rows.add_row()
    for row in said["matrix"]:
        needs = f" (needs {row['needs']})" if row["needs"] else ""
        rows.add_row(printable(row["variant"]), printable(row["title"] + needs))
    rows.add_row()
    for label, body in (*_standing(said, str(case["cause"])), *_next(said)):
        rows.add_row(label, body)
    legend = "✓ as reported  ✗ contradicts the report  ? not observed  @1: that stage first"
    return Group(_matrix(said, controls), Text(legend, "dim"), Text(), rows)


def _matrix(said: Record, controls: Sequence[Record]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for head in ("", *(control["id"] for control in controls), ""):
        table.add_column(printable(head), no_wrap=True)
    reported = [_reported(control) for control in controls]
    table.add_row(Text("report", "bold"), *(Text(f"  {said}", "bold") for said in reported), "")
    for row in said["matrix"]:
        cells = {cell["control"]: cell for cell in row["cells"]}
        standing = "survives" if row["variant"] in said["survive"] else ""
        table.add_row(
            Text(printable(row["variant"]), "bold" if standing else ""),
            *(_cell(cells[control["id"]]) for control in controls),
            Text(standing, "bold magenta"),
        )
    return table


def _reported(control: Record) -> str:
    if control["reported"]:
        return word(control["reported"]["outcome"], control["reported"]["stage"])
    return "facts"


def word(outcome: str, stage: int | None) -> str:
    """An outcome in a word, with the stage that faulted first."""
    return WORDS[outcome] + ("" if stage is None else f"@{stage}")


def _cell(cell: Record) -> Text:
    meets, outcome = cell["meets"], cell["outcome"]
    if meets is None:
        return Text("?", "yellow")
    mark, style = ("✓", "green") if meets else ("✗", "red")
    said = " " + word(outcome["kind"], outcome["stage"]) if outcome else ""
    return Text(f"{mark}{said}", style)


def _standing(said: Record, cause: str) -> Iterator[tuple[str, RenderableType]]:
    out = " · ".join(f"{entry['variant']} by {', '.join(entry['by'])}" for entry in said["out"])
    if out:
        yield "out", Text(printable(out))
    if said["undecided"]:
        names = ", ".join(said["undecided"])
        yield "unknown", Text(printable(f"{names}: not every reported experiment was observed"))
    yield "survive", Text(printable(", ".join(said["survive"]) or "none of those that ran"))
    yield "", Text(f"Consistency is not proof: the cause of the report stays {cause}.")
    for control in said["controls"]:
        if len(control["levers"]) > 1:
            pulled = " and ".join(control["levers"])
            text = (
                f"Two levers were pulled at once in {control['id']} ({pulled}): "
                "it does not say which of them helped."
            )
            yield "", Text(printable(text))


def _next(said: Record) -> Iterator[tuple[str, RenderableType]]:
    if not said["next"] and len(said["survive"]) > 1:
        yield "next", Text("no experiment of the case tells the survivors apart")
    for number, entry in enumerate(said["next"][:SHOWN], 1):
        told = ", ".join(
            f"{name} {word(o['kind'], o['stage'])}" for name, o in entry["outcomes"].items()
        )
        text = f"{number}  {entry['title']}: {told} ({entry['bits']:g} bit)"
        command = Text("   " + printable(entry["command"]), "green")
        yield "" if number > 1 else "next", Group(Text(printable(text)), command)
