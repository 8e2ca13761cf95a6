"""The page of a check in a terminal, written from the stored record alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..escape import printable
from . import check_hypotheses
from .check_findings import line as finding_line
from .check_matrix import STATE_STYLE, VERDICT_STYLE, legend, matrix
from .upstream import shorthand

Record = Mapping[str, Any]

SHOWN = 6  # findings of a kernel
# records of before there was another depth do not say it
SOURCE = "the code (depth source); not at kernels, not at a running engine"


def print_check(
    out: Console, record: Record, *, quiet: bool = False, verbose: bool = False
) -> None:
    """One build: everything about it. Several: a row each. `quiet`: a line a build."""
    builds = record["builds"]
    if quiet:
        for build in builds:
            out.print(_headline(record, build), soft_wrap=True)
        return
    out.print(_about(record))
    out.print()
    if len(builds) == 1 or verbose:
        for number, build in enumerate(builds):
            if number:
                out.print()
            out.print(_panel(record, build, verbose=verbose))
    if len(builds) != 1:
        if verbose:
            out.print()
        out.print(matrix(builds))
        out.print()
        out.print(Text(legend(builds), "dim"))
    out.print(Text(printable(f"looked at: {record.get('looked_at', SOURCE)}"), "dim"))
    if record["cause"] != "confirmed" and any(b["verdict"] == "NOT AFFECTED" for b in builds):
        out.print(
            Text(
                "NOT AFFECTED is about these defects only: the cause of the report itself is "
                f"{printable(record['cause'])}",
                "dim",
            )
        )


def _headline(record: Record, build: Record) -> Text:
    verdict = str(build["verdict"])
    return Text.assemble(
        (printable(record["case"]), "bold"),
        f"   vllm {printable(build['version'])}   ",
        (verdict, VERDICT_STYLE.get(verdict, "bold")),
    )


def _about(record: Record) -> Text:
    text = Text.assemble(
        (printable(record["case"]), "bold"),
        "   ",
        printable(record["title"]),
        "   ",
        (shorthand(record["report"]), "cyan"),
        (f" · upstream cause {record['cause']}", "dim"),
    )
    asked = record["question"]
    words = [f"defect {name}" for name in asked["defects"]]
    words += [f"with {name} {value}" for name, value in asked["with"].items()]
    words += ["defaults only"] if asked["default_only"] else []
    if words:
        text.append("\nasked: " + printable(", ".join(words)), "dim")
    return text


def _panel(record: Record, build: Record, *, verbose: bool) -> Group:
    parts: list[RenderableType] = [_headline(record, build)]
    about = [build["file"], f"commit {build['commit']}" if build["commit"] else None]
    parts.append(Text(printable(" · ".join(a for a in about if a)), "dim"))
    if not build["defects"]:
        parts += [Text(printable(f"  {reason}")) for reason in build["reasons"]]
        return Group(*parts)
    parts.append(Text())
    for standing in build["defects"]:
        parts += [Padding(part, (0, 0, 0, 2)) for part in _defect(build, standing, verbose)]
    if build.get("hypotheses"):
        parts += [Text(), Padding(check_hypotheses.page(build["hypotheses"]), (0, 0, 0, 2))]
    parts += [Text(), Padding(_facts(build), (0, 0, 0, 2))]
    return Group(*parts)


def _defect(build: Record, standing: Record, verbose: bool) -> Iterator[RenderableType]:
    name, state = str(standing["defect"]), str(standing["state"])
    line = Text.assemble((printable(name), "bold"), "   ", (state, STATE_STYLE.get(state, "")))
    if not standing["counted"]:
        line.append("   not counted", "dim")
    yield line
    reason = printable(str(standing["reason"]).removeprefix(f"{name}: "))
    yield Padding(Text(reason), (0, 0, 0, 2))
    for acting in build["exposure"]:
        if acting["defect"] == name:
            yield Padding(_acting(acting), (0, 0, 0, 2))
    shown = state != "absent" or verbose
    for row in build["evidence"] if shown else ():
        if row["defect"] == name:
            yield Padding(_evidence(row, excerpt=state == "present" or verbose), (0, 0, 0, 2))
            if row.get("findings"):
                yield Padding(_findings(row, 100 if verbose else SHOWN), (0, 0, 0, 4))


def _acting(acting: Record) -> Text:
    settings = ", ".join(
        f"{name} ≥ {value}" if isinstance(value, int) else f"{name} {value}"
        for name, value in acting["settings"].items()
    )
    how = {
        True: f"by default for {' and '.join(acting['models'])} models",
        False: "not by default",
        None: "whether by default is not known",
    }[acting["default"]]
    return Text.assemble("acts with ", (printable(settings or "any settings"), "bold"), f": {how}")


def _evidence(row: Record, *, excerpt: bool) -> Text:
    value = "unknown" if row["value"] is None else _value(row["value"])
    text = Text.assemble(
        (printable(row["probe"]), "cyan"), ": ", (printable(value), "bold"), f" ({row['how']})  "
    )
    if row["where"]:
        text.append(printable(row["where"]), "dim")
    if row["detail"]:
        text.append("\n  " + printable(row["detail"]))
    for line in row.get("tail", ()):
        text.append("\n    " + printable(line), "dim")
    if not excerpt:
        return text
    here = int(row["where"].rpartition(":")[2]) if row["where"] else -1
    for number, line in row["excerpt"]:
        mark = "▶" if number == here else " "
        style = "bold" if number == here else "dim"
        text.append(f"\n  {mark} {number:>5} │ {printable(line)}", style)
    return text


def _findings(row: Record, most: int) -> Text:
    """What a kernel touched or wrote, up to `most` lines."""
    found = row.get("findings", ())
    text = Text("\n".join(finding_line(one) for one in found[:most]))
    left = len(found) - most + row.get("more", 0) if len(found) > most else row.get("more", 0)
    if left:
        text.append(f"\n{left} more: --verbose, --json", "dim")
    return text


def _value(value: Any) -> str:
    """A value; of a table its keys by value, the values that all share alone."""
    if not isinstance(value, Mapping):
        return str(value)
    if len(set(value.values())) == 1:
        return str(next(iter(value.values())))
    return ", ".join(f"{key} {one}" for key, one in value.items())


def _facts(build: Record) -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="dim")
    rows.add_column(overflow="fold")
    for row in build["evidence"]:
        if row["defect"] is None:
            value = "unknown: " + row["detail"] if row["value"] is None else _value(row["value"])
            where = f"   {row['where']}" if row["where"] else ""
            said = Text.assemble(printable(value), (printable(where), "dim"))
            if row["how"] == "measured" and row["value"] is not None and row["detail"]:
                said.append("\n" + printable(row["detail"]), "dim")
            for one in row.get("findings", ())[:1]:
                said.append("\n" + finding_line(one), "dim")
            rows.add_row(row["probe"], said)
    isolation = build["isolation"]
    rows.add_row("isolation", Text(printable(", ".join(isolation["holds"]) or "none")))
    if isolation["fails"]:
        rows.add_row(
            "", Text(printable("not isolated: " + "; ".join(isolation["fails"])), "yellow")
        )
    for note in build["notes"]:
        rows.add_row("note", Text(printable(note)))
    return rows
