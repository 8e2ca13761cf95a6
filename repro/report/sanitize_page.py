"""The page of a sanitized script in a terminal, written from its record alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..escape import printable
from .emulate_page import SHOWN, finding_rows, said_of, warning_rows

Record = Mapping[str, Any]
MOST_ROWS = 40  # of the table of launches; --json has all


def print_sanitized(out: Console, record: Record, *, quiet: bool, verbose: bool) -> None:
    """The launches and what they did wrong; with `quiet` the first line, with `verbose` all."""
    if quiet:
        out.print(headline(record), soft_wrap=True)
    else:
        out.print(Group(*_page(record, None if verbose else SHOWN)))


def headline(record: Record) -> Text:
    """The script and the result."""
    launches, count = len(record["launches"]), len(record["findings"]) + record["more"]
    text = Text.assemble((printable(str(record["script"]["file"])), "bold"), "   ")
    text.append_text(said_of(count, unknown=record["unsupported"] is not None))
    return text.append(f" · {launches} launch{'es'[: 2 * (launches != 1)]}")


def _page(record: Record, most: int | None) -> list[RenderableType]:
    parts: list[RenderableType] = [headline(record), Text()]
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="dim", min_width=8)
    rows.add_column(overflow="fold")
    unsupported = record["unsupported"]
    if unsupported:
        why = "\n".join(map(printable, str(unsupported["message"]).splitlines()))
        rows.add_row("why", Text(why))
        if unsupported["hint"]:
            rows.add_row("hint", Text(printable(str(unsupported["hint"]))))
        rows.add_row("", Text())
    excerpts = dict(record["excerpts"])
    found = record["findings"]
    for finding in found[:most]:
        rows.add_row("launch", Text(printable(f"{finding['launch']}, {finding['op']}")))
        tensor = record["tensors"].get(finding["tensor"])
        finding_rows(rows, finding, tensor, excerpts)
    rest = len(found) + record["more"] - (len(found) if most is None else most)
    if rest > 0:
        rows.add_row("", Text(f"and {rest} more", "dim"))
    warning_rows(rows, record["warnings"], most)
    if record["checks"]:
        rows.add_row("checked", Text(printable(", ".join(map(str, record["checks"])))))
    if record["unchecked"]:
        gaps = ", ".join(map(str, record["unchecked"]))
        rows.add_row("skipped", Text(printable(gaps), "yellow"))
    if record["script"]["status"] is not None:
        rows.add_row("script", Text(f"ended with status {record['script']['status']}"))
    parts.append(Padding(rows, (0, 0, 0, 2)))
    if record["launches"]:
        parts += [Text(), Padding(_launches(record["launches"]), (0, 0, 0, 4))]
    return parts


def _launches(launches: list[Record]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("launch", "kernel", "grid", "threads", "findings"):
        table.add_column(name, justify="right" if name == "threads" else "left")
    rows = list(_merged(launches))
    for first, last, launch in rows[:MOST_ROWS]:
        result = Text(str(launch["found"]), "red") if launch["found"] else Text("–", "dim")
        if launch["refused"]:
            result = Text("not executed", "yellow")
        table.add_row(
            str(first) if first == last else f"{first}–{last}",
            printable(str(launch["kernel"])),
            " × ".join(str(n) for n in launch["grid"]),
            str(launch["threads"]),
            result,
        )
    if len(rows) > MOST_ROWS:
        table.add_row("", f"and {len(rows) - MOST_ROWS} more rows", "", "", "")
    return table


def _merged(launches: list[Record]) -> Iterator[tuple[int, int, Record]]:
    """Launches in a row that differ in their number only, as (first, last, one of them)."""
    first = 0
    for number, launch in enumerate(launches):
        following = launches[number + 1] if number + 1 < len(launches) else None
        keys = ("kernel", "grid", "threads", "found", "refused")
        if following is None or any(launch[key] != following[key] for key in keys):
            yield first, number, launch
            first = number + 1
