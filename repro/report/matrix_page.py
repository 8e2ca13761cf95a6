"""Hypotheses against the experiments of a report: the matrix, what is out, what to try next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..escape import printable

Record = Mapping[str, Any]

WORDS = {"illegal_access": "illegal", "wrong_output": "wrong", "right": "right"}
SHOWN = 3  # experiments proposed
UNBOUNDED = 10_000  # columns; wider than any table


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
    return Group(Matrix(said, controls), Text(legend, "dim"), Text(), rows)


class Matrix:
    """Hypothesis by control; where the terminal is narrower than that, one hypothesis a line."""

    def __init__(self, said: Record, controls: Sequence[Record]) -> None:
        self._names = [printable(control["id"]) for control in controls]
        self._rows = [("report", "bold", [Text(_reported(c), "bold") for c in controls])]
        for row in said["matrix"]:
            cells = {cell["control"]: cell for cell in row["cells"]}
            style = "bold" if row["variant"] in said["survive"] else ""
            row_cells = [_cell(cells[control["id"]]) for control in controls]
            self._rows.append((printable(row["variant"]), style, row_cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        table = self._table()
        wanted = console.measure(table, options=options.update(max_width=UNBOUNDED)).maximum
        yield table if wanted <= options.max_width else self._list()

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
        for head in ("", *self._names):
            table.add_column(head, no_wrap=True)
        for number, (name, style, cells) in enumerate(self._rows):
            # the outcomes of the report stand under the others, which have a mark before them
            shown = cells if number else [Text("  ").append_text(cell) for cell in cells]
            table.add_row(Text(name, style), *shown)
        return table

    def _list(self) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, style, cells in self._rows:
            named = [
                Text(f"{at} ").append_text(c) for at, c in zip(self._names, cells, strict=True)
            ]
            table.add_row(Text(name, style), Columns(named, padding=(0, 2)))
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
        where = " and ".join(_lanes(said, entry["control"], entry["outcomes"]))
        text = f"{number}  {entry['title']}: {told} ({entry['bits']:g} bit, in lane {where} only)"
        command = Text("   " + printable(entry["command"]), "green")
        yield "" if number > 1 else "next", Group(Text(printable(text)), command)


def _lanes(said: Record, control: str, variants: Mapping[str, Any]) -> list[str]:
    """Where a control was run for these hypotheses."""
    cells = [(row["variant"], cell) for row in said["matrix"] for cell in row["cells"]]
    found = (c["lane"] for variant, c in cells if variant in variants and c["control"] == control)
    return list(dict.fromkeys(str(lane) for lane in found))
