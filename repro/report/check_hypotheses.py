"""The hypotheses of a case beside what an engine was measured to do: on a page, in a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from ..escape import printable
from .document import Block, Bullets, Line, Mono, Paragraph, Section
from .document import Table as Rows
from .matrix_page import WORDS

Record = Mapping[str, Any]

HEAD = ("", "by the report", "by this build")
LEGEND = (
    "a cell: what the hypothesis does there in the model, then what the build did; "
    "✗ the build stays right where the hypothesis goes wrong, so it is not in it; "
    "✓ the build goes wrong too, by this or by another fault; "
    "· the hypothesis does not act there, or the build came to nothing: nothing is told"
)
MARKS = {"not there": "✗", "compatible": "✓", "not told": "·"}
STYLES = {"not there": "red", "compatible": "green", "not told": "dim"}


def page(said: Record) -> Group:
    """For a terminal: a row for each hypothesis, a column for each experiment."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for head in (*HEAD, *map(str, range(1, len(said["experiments"]) + 1))):
        table.add_column(head, no_wrap=True)
    for row in said["matrix"]:
        build = str(row["build"])
        cells = [Text(_cell(cell), STYLES.get(str(cell["tells"]), "dim")) for cell in row["cells"]]
        table.add_row(
            Text(printable(row["variant"])),
            Text(printable(_report(row))),
            Text(printable(build), STYLES.get(build, "")),
            *cells,
        )
    named = Table.grid(padding=(0, 2))
    named.add_column(no_wrap=True, style="dim")
    named.add_column(overflow="fold")
    for number, one in enumerate(said["experiments"], 1):
        named.add_row(str(number), Text(printable(_experiment(one))))
    return Group(Text("hypotheses", "bold"), table, named, Text(LEGEND, "dim"))


def section(said: Record) -> Section:
    """For a document."""
    rows: list[list[Line]] = []
    for row in said["matrix"]:
        cells = [(_cell(cell),) for cell in row["cells"]]
        rows.append([(Mono(str(row["variant"])),), (_report(row),), (str(row["build"]),), *cells])
    heads = [*HEAD, *(str(one["id"]).removeprefix("control-") for one in said["experiments"])]
    return Section("Hypotheses of the case, by what was measured", list(_parts(said, heads, rows)))


def _parts(said: Record, heads: list[str], rows: list[list[Line]]) -> Iterator[Block]:
    yield Rows(heads, rows, LEGEND)
    yield Bullets(
        [
            (Mono(str(one["id"]).removeprefix("control-")), f": {_experiment(one)}")
            for one in said["experiments"]
        ]
    )
    yield Bullets([(Mono(str(row["variant"])), f": {row['title']}") for row in said["matrix"]])
    yield Paragraph(
        (
            "What the report says of them and what this build does are kept apart: neither changes "
            "the other, and consistency is not proof.",
        )
    )


def _report(row: Record) -> str:
    by = f" by {', '.join(map(str, row['by']))}" if row["by"] else ""
    return f"{row['report']}{by}"


def _cell(cell: Record) -> str:
    mark = MARKS.get(str(cell["tells"]), "·")
    return f"{mark} {_word(cell['modelled'])}/{_word(cell['measured'])}"


def _word(outcome: Any) -> str:
    return WORDS.get(str(outcome), "?")


def _experiment(one: Record) -> str:
    return f"{one['title']}: {_word(one['measured'])}, {one['says']}"
