"""The page of an emulated launch in a terminal, written from its record alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..emulation.kernel_text import plain_name
from ..emulation.wording import landing, what, who
from ..escape import printable
from ..records import Finding

Record = Mapping[str, Any]
SHOWN = 10  # findings of a page; --json has more


def print_emulated(out: Console, record: Record, *, quiet: bool, verbose: bool) -> None:
    """The launch and what it did wrong; with `quiet` the first line only, with `verbose` all."""
    if quiet:
        out.print(headline(record), soft_wrap=True)
    else:
        out.print(Group(*_page(record, None if verbose else SHOWN)))


def headline(record: Record) -> Text:
    """The kernel and the result."""
    kernel = record["kernel"]
    name = plain_name(str(kernel["entry"] or kernel["file"]))
    text = Text.assemble((printable(name), "bold"), "   ")
    count = len(record["findings"]) + record["more"]
    return text.append_text(said_of(count, unknown=bool(record["unsupported"])))


def said_of(count: int, *, unknown: bool) -> Text:
    """The result in two words. unknown: something was not executed to its end."""
    if count:
        return Text(f"{count} FINDING{'S'[: count != 1]}", "bold red")
    if unknown:
        return Text.assemble(("UNKNOWN", "bold yellow"), " · it was not executed to its end")
    return Text("NO FINDING", "bold green")


def _page(record: Record, most: int | None) -> list[RenderableType]:
    launch = record["launch"]
    grid, block = (" × ".join(str(n) for n in launch[key]) for key in ("grid", "block"))
    about = f"{record['kernel']['file']}   grid {grid}, block {block}"
    if launch["shared_bytes"]:
        about += f", {launch['shared_bytes']} bytes of dynamic shared memory"
    parts: list[RenderableType] = [headline(record), Text(printable(about), "dim"), Text()]
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="dim", min_width=8)
    rows.add_column(overflow="fold")
    unsupported = record["unsupported"]
    if unsupported:
        where = f"{unsupported['where']}: " if unsupported["where"] else ""
        rows.add_row(
            "why", Text("\n".join(map(printable, f"{where}{unsupported['message']}".splitlines())))
        )
        if unsupported["hint"]:
            rows.add_row("hint", Text(printable(str(unsupported["hint"]))))
    shapes = {b["name"]: _buffer(b) for b in launch["buffers"]}
    found = record["findings"]
    excerpts = dict(record["excerpts"])  # each is shown once
    for finding in found[:most]:
        finding_rows(rows, finding, shapes.get(finding["tensor"]), excerpts)
    if most is not None and len(found) + record["more"] > most:
        rows.add_row("", Text(f"and {len(found) + record['more'] - most} more", "dim"))
    warning_rows(rows, record["warnings"], most)
    printed = str(record["printed"])
    if printed:
        rows.add_row("printed", Text("\n".join(map(printable, printed.splitlines()[:most]))))
    if launch.get("decided"):
        blocks = f"all {launch['decided']:,} blocks" if launch["decided"] > 1 else "the block"
        rows.add_row(
            "how", f"one look decided about {blocks}: no address depends on what is loaded"
        )
    for note in record["notes"]:
        rows.add_row("note", Text(printable(str(note))))
    if record["checks"]:
        rows.add_row("checked", Text(printable(", ".join(map(str, record["checks"])))))
    if record["unchecked"]:
        gaps = ", ".join(map(str, record["unchecked"]))
        rows.add_row("skipped", Text(printable(gaps), "yellow"))
    parts.append(Padding(rows, (0, 0, 0, 2)))
    if launch["buffers"]:
        parts += [Text(), Padding(_buffers(launch["buffers"]), (0, 0, 0, 4))]
    return parts


def warning_rows(rows: Table, warnings: list[Record], most: int | None) -> None:
    """Add races between blocks to a table of two columns, at most `most` of them."""
    for warned in warnings[:most]:
        source = warned["source"]
        place = f"{source['file']}:{source['line']}: " if source else ""
        rows.add_row("warning", Text(printable(f"{place}{warned['text']}"), "yellow"))
    if most is not None and len(warnings) > most:
        rows.add_row("", Text(f"and {len(warnings) - most} more", "dim"))


def finding_rows(
    rows: Table, finding: Record, tensor: str | None, excerpts: dict[str, Any]
) -> None:
    """Add a finding to a table of two columns. excerpts: `file:line` → lines, each shown once."""
    record = Finding.from_json(finding)
    rows.add_row("what", Text(printable(what(record, tensor)), "bold"))
    if record.lands_in:
        rows.add_row(landing(record), Text(printable(record.lands_in)))
    if who(record):
        rows.add_row("who", Text(who(record)))
    if record.request is not None:
        rows.add_row("request", Text(str(record.request)))
    if record.source:
        place = f"{record.source.file}:{record.source.line}"
        excerpt = excerpts.pop(place, [])
        rows.add_row("where", _where(record.source.file, record.source.line, excerpt))
    rows.add_row("", Text())


def _where(file: str, line: int, excerpt: list[list[Any]]) -> RenderableType:
    lines: list[RenderableType] = [Text(f"{printable(file)}:{line}", "cyan", overflow="fold")]
    for number, source in excerpt:
        here = number == line
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{'▶' if here else ' '} {number:4} │ ", "red" if here else "dim")
        text.append(printable(str(source).rstrip().replace("\t", "    ")), "" if here else "dim")
        lines.append(text)
    return Group(*lines)


def _buffers(buffers: list[Record]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("buffer", "type", "bytes", "filled with"):
        table.add_column(name, justify="right" if name == "bytes" else "left")
    for each in buffers:
        kind = _buffer(each).removeprefix(f"{each['name']} ")
        name = str(each["name"]) + ("" if each["argument"] else " (by pointer only)")
        table.add_row(*map(printable, (name, kind, f"{each['bytes']:,}", str(each["fill"]))))
    return table


def _buffer(buffer: Record) -> str:
    return f"{buffer['name']} {buffer['dtype']}[{', '.join(str(n) for n in buffer['shape'])}]"
