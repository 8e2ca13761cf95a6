"""The page of `specrepro selftest`, written from its record alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..escape import printable

Record = Mapping[str, Any]
MARKS = {
    "seen": ("✓", "green"),
    "clean": ("✓", "green"),
    "not seen": ("✗", "bold red"),
    "false finding": ("✗", "bold red"),
    "unknown": ("?", "yellow"),
    "cannot see": ("·", "dim"),
    "not run": ("–", "dim"),
}
NOT_ASKED = "it was not asked for"
LEGEND = "✓ seen, or clean  ✗ missed, or false  ? unknown  · cannot see  – not run"


def print_selftest(out: Console, record: Record, *, quiet: bool, verbose: bool) -> None:
    """The table and what is wrong; with `quiet` no table, with `verbose` what was found. Where no
    instrument ran there is nothing but the reason. What was not asked for is left out."""
    out.print(_headline(record))
    idle = not any(each["ran"] for each in record["instruments"])
    quiet = quiet and not idle
    if not quiet and not idle:
        out.print()
        for names in _columns(record, out.width):
            out.print(_table(record, names), Text())
        out.print(Text(LEGEND, "dim"))
    rows = _grid([*_reasons(record, quiet=quiet), *(_details(record) if verbose else ())])
    if rows is not None:
        out.print(rows)


def _headline(record: Record) -> Text:
    ran = [str(each["name"]) for each in record["instruments"] if each["ran"]]
    verdict, style = ("ALL SEEN", "bold green") if record["ok"] else ("NOT ALL SEEN", "bold red")
    if not ran:
        verdict, style = "NOTHING WAS LOOKED AT", "bold yellow"
    names = " and ".join([", ".join(ran[:-1]), ran[-1]] if ran[1:] else ran)
    by = f"by {printable(names)}" if ran else "no instrument ran"
    return Text.assemble(
        ("selftest", "bold"), "   ", (verdict, style), f" · {by}", f"   {record['seconds']} s"
    )


def _columns(record: Record, width: int) -> Iterator[list[str]]:
    """The instruments, as many of them side by side as `width` columns hold."""
    left = 1 + max(len(fault["about"]) for fault in record["faults"])
    names: list[str] = []
    used = left
    for each in record["instruments"]:
        if each["reason"] == NOT_ASKED:
            continue
        name = str(each["name"])
        if names and used + len(name) > width:
            yield names
            names, used = [], left
        names.append(name)
        used += len(name) + 1
    if names:
        yield names


def _table(record: Record, names: Sequence[str]) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("planted", no_wrap=True)
    for name in names:
        table.add_column(printable(name), no_wrap=True)
    for fault in record["faults"]:
        cells = {cell["instrument"]: cell for cell in fault["cells"]}
        table.add_row(printable(str(fault["about"])), *(_mark(cells[name]) for name in names))
    return table


def _mark(cell: Record) -> Text:
    mark, style = MARKS[cell["state"]]
    if not cell["ok"]:
        return Text(mark, "bold red")
    return Text(mark, "green" if cell["state"] == "unknown" else style)


def _reasons(record: Record, *, quiet: bool) -> Iterator[tuple[Text, str]]:
    """What a cell of the table cannot say."""
    for fault, cell in _pairs(record):
        if not cell["ok"] or (cell["state"] == "unknown" and not quiet):
            yield _mark(cell), _said(fault, cell)
    reasons: dict[str, list[str]] = {}
    for each in record["instruments"]:
        if not each["ran"] and not quiet and each["reason"] != NOT_ASKED:
            reasons.setdefault(str(each["reason"]), []).append(str(each["name"]))
    for reason, names in reasons.items():
        yield Text("–", "dim"), f"{', '.join(names)}: {reason}"


def _details(record: Record) -> Iterator[tuple[Text, str]]:
    yield Text(), ""
    for fault, cell in _pairs(record):
        if cell["state"] not in ("not run", "cannot see"):
            yield _mark(cell), f"{_said(fault, cell)} ({cell['seconds']} s)"


def _pairs(record: Record) -> Iterator[tuple[Record, Record]]:
    for fault in record["faults"]:
        for cell in fault["cells"]:
            yield fault, cell


def _said(fault: Record, cell: Record) -> str:
    return f"{fault['about']}, {cell['instrument']}: {cell['detail'] or cell['state']}"


def _grid(rows: Sequence[tuple[Text, str]]) -> RenderableType | None:
    if not rows:
        return None
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for mark, said in rows:
        table.add_row(mark, Text(printable(said)))
    return Group(table)
