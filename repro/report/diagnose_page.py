"""The page of a diagnosis in a terminal, written from the stored record alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..escape import printable
from . import diagnose_words as words

Record = Mapping[str, Any]

STYLES = {"likely": "bold red", "possible": "yellow", "excluded": "green", "unknown": "dim"}
MOST_CASCADE = 5
MOST_CLUSTERS = 20
MOST_EXCLUDED = 4
LABEL = 9  # columns
INDENT = LABEL + 2


def print_diagnosis(
    out: Console, record: Record, *, quiet: bool = False, verbose: bool = False
) -> None:
    """First failure, consequences, classes, what is missing and what to try next.

    `quiet`: one line. `verbose`: all classes with weights, all consequences.
    """
    if quiet:
        out.print(_short(record), soft_wrap=True)
        return
    out.print(
        Text.assemble(
            (printable(words.headline(record)), "bold"), "   ", (words.extent(record), "dim")
        )
    )
    if record.get("logs", 1) > 1 and "quiet" in record:
        _clusters(out, record)
        out.print(Text("\nthe most frequent one, from its first log:", "dim"))
    _rows(out, _failures(record, verbose))
    if record["classes"]:
        _rows(out, _classes(record, verbose))
    _missing(out, record)
    _experiments(out, record)
    _rows(out, _fixes(record, verbose))
    _cases(out, record)
    _rows(out, _remarks(record, verbose))
    _others(out, record)


def _short(record: Record) -> Text:
    classes = words.standing(record, "likely") or words.standing(record, "possible")
    names = ", ".join(row["id"] for row in classes[:3]) or "no class"
    standing = classes[0]["standing"] if classes else "unknown"
    failure = record["first_failure"]
    what = failure["what"] if failure else words.first(record)
    return Text.assemble(
        printable(what), "   ", (standing, STYLES[standing]), " ", (printable(names), "bold")
    )


def _rows(out: Console, rows: Iterator[tuple[str, str, Text]]) -> None:
    """A label and what is said, folded beside it."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=LABEL)
    table.add_column(ratio=1, overflow="fold")
    for label, style, text in rows:
        table.add_row(Text(label, style), text)
    if table.row_count:
        out.print(table)


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style)


def _failures(record: Record, verbose: bool) -> Iterator[tuple[str, str, Text]]:
    yield "FIRST", "bold", _text(words.first(record), "bold" if record["first_failure"] else "")
    for remark in words.remarks(record):
        yield "", "", _text(remark, "dim")
    cascade = record["cascade"]
    shown = cascade if verbose else cascade[:MOST_CASCADE]
    for number, row in enumerate(shown):
        yield "THEN" if number == 0 else "", "bold", _text(words.event(row))
    if len(cascade) > len(shown):
        yield "", "", Text(f"and {len(cascade) - len(shown)} more consequences", "dim")
    for number, row in enumerate(record["beside"] if verbose else record["beside"][:MOST_CASCADE]):
        yield "BESIDE" if number == 0 else "", "bold", _text(words.event(row))


def _classes(record: Record, verbose: bool) -> Iterator[tuple[str, str, Text]]:
    for row in words.standing(record, *words.OPEN):
        name = (printable(row["id"]), "bold")
        weights = f"   {row['score']:+.1f}" if verbose else ""
        said = Text.assemble(name, (weights, "dim"), "  ", _said(row["for"], verbose))
        yield row["standing"], STYLES[row["standing"]], said
        if row["against"]:
            yield "", "", Text.assemble(("against: ", "dim"), _said(row["against"], verbose))
        if row["unmet"]:
            yield "", "", _text("not known: " + "; ".join(row["unmet"]), "dim")
    hidden = words.standing(record, "excluded") if verbose else words.excluded(record)
    shown = hidden if verbose else hidden[:MOST_EXCLUDED]
    for row in shown:
        reason = words.statement(row["against"][0]) if row["against"] else ""
        said = Text.assemble((printable(row["id"]), "bold"), "  ", printable(reason))
        yield "excluded", STYLES["excluded"], said
    if len(hidden) > len(shown):
        names = ", ".join(row["id"] for row in hidden[len(shown) :])
        yield "", "", _text(f"and {names}", "dim")
    rest = words.unknown(record)
    if rest:
        yield "unknown", STYLES["unknown"], _text(rest, "dim")
    for row in record["misleading"]:
        yield (
            "ignored",
            "dim",
            _text(words.statement({**row, "text": row["why"], "how": ""}), "dim"),
        )


def _said(rows: Any, verbose: bool) -> Text:
    parts = []
    for row in rows:
        weight = f" [{row['weight']:+.1f}]" if verbose and row["weight"] is not None else ""
        parts.append(words.statement(row) + weight)
    return _text(words.joined(parts))


def _missing(out: Console, record: Record) -> None:
    for number, row in enumerate(record["missing"]):
        label = "missing" if number == 0 else ""
        how = (f"   {printable(row['how'])}", "dim")
        _whole(out, Text.assemble(_label(label), printable(row["ask"]), how))


def _experiments(out: Console, record: Record) -> None:
    """What to try: what it is beside its number, and below it the command on lines of its own."""
    for number, row in enumerate(record["experiments"], start=1):
        said = Text.assemble((f"{number}  ", "bold"), printable(words.experiment(row)))
        _rows(out, iter([("next" if number == 1 else "", "bold", said)]))
        if row["command"]:
            _whole(out, Text(" " * INDENT + printable(row["command"]), "cyan"))


def _fixes(record: Record, verbose: bool) -> Iterator[tuple[str, str, Text]]:
    likely = words.standing(record, "likely")
    for row in likely if verbose else likely[:1]:
        for number, fix in enumerate(words.fixes(row)):
            yield "fix" if number == 0 else "", "bold", _text(fix)


def _cases(out: Console, record: Record) -> None:
    for number, line in enumerate(words.cases(record)):
        _whole(
            out, Text.assemble(_label("check" if number == 0 else ""), (printable(line), "cyan"))
        )


def _remarks(record: Record, verbose: bool) -> Iterator[tuple[str, str, Text]]:
    for row in record["unread"][: None if verbose else 5]:
        where = f"{row['source']}:{row['line']}" if row["line"] else row["source"]
        yield "unread", "yellow", _text(f"{row['count']:,} × {row['what']} ({where})")
    for hint in record["hints"]:
        yield "hint", "cyan", _text(hint)


def _label(text: str) -> tuple[str, str]:
    return f"{text:{INDENT}}", "bold"


def _whole(out: Console, line: Text) -> None:
    """A line that is there to be copied: the terminal wraps it, so it is pasted as one."""
    out.print(line, soft_wrap=True)


def _others(out: Console, record: Record) -> None:
    """Further incidents of the same log, a line each."""
    others = record["incidents"] if "quiet" not in record else ()
    if len(others) < 2:
        return
    out.print(Text(f"\n{len(others)} incidents", "bold"))
    for row in others[:MOST_CLUSTERS]:
        seen = words.cluster(row)
        out.print(_text(f"  {row['number']}  {row['signature']}" + (f"   {seen}" if seen else "")))


def _clusters(out: Console, record: Record) -> None:
    rows = record["incidents"]
    counted = sum(row["count"] for row in rows)
    silent = record["quiet"]
    kinds = f"{len(rows):,} kind{'s'[: len(rows) != 1]}"
    incidents = f"{counted:,} incident{'s'[: counted != 1]}"
    quiet = f"{silent:,} log{'s'[: silent != 1]}"
    said = f"{incidents} of {kinds}; nothing wrong in {quiet}"
    out.print(Text(said))
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    table.add_column("count", justify="right")
    table.add_column("incident", ratio=3, overflow="fold")
    table.add_column("first and last seen, hosts", ratio=2, overflow="fold")
    for row in rows[:MOST_CLUSTERS]:
        table.add_row(f"{row['count']:,}", _text(row["signature"]), _text(words.cluster(row)))
    out.print(table)
    if len(rows) > MOST_CLUSTERS:
        out.print(Text(f"and {len(rows) - MOST_CLUSTERS} more kinds; --json has all", "dim"))
