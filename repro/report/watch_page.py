"""What the watchers saw, in a terminal: an incident a block, and what could not be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ..escape import printable

Record = Mapping[str, Any]

STYLE = {
    "application": "magenta",
    "hardware": "bold red",
    "driver": "red",
    "either": "yellow",
    "consequence": "dim",
    "information": "dim",
}


def print_watch(
    out: Console, record: Record, *, quiet: bool = False, verbose: bool = False
) -> None:
    """The page of a watched command."""
    words = printable(" ".join(map(str, record["words"])))[:200]
    out.print(Text.assemble(("watched", "bold"), f"   {words}   ", f"status {record['status']}"))
    for incident in record["incidents"]:
        print_incident(out, incident)
    if not record["incidents"]:
        blind = not any(one["observable"] for one in record["watched"])
        nothing = "nothing could be seen" if blind else "no Xid was seen"
        out.print(Text(f"  {nothing}", "yellow" if blind else ""))
    if not quiet:
        print_sources(out, record["watched"])
        cut = "   (not all of the output is in it)" if record["log"]["cut"] else ""
        out.print(Text(printable(f"  log    {record['log']['path']}{cut}"), "dim"), soft_wrap=True)
        out.print(Text("  next   specrepro diagnose latest", "green"))


def print_incident(out: Console, incident: Record) -> None:
    """One incident: what, where, whose, what to do."""
    kind = str(incident["class"] or "unknown")
    head = Text.assemble(
        (printable(str(incident["at"])), "dim"),
        "   ",
        (f"Xid {incident['code']}", "bold"),
        f" {printable(str(incident['mnemonic'] or 'a code that the catalog does not have'))}",
        "   ",
        (kind, STYLE.get(kind, "yellow")),
    )
    out.print(head)
    message = incident["message"] or {}
    where = [f"GPU {incident['bus']}" if incident["bus"] else "GPU not told"]
    if incident["instance"]:
        where.append(f"MIG instance {incident['instance'][0]}")
    process = f"{incident['process'] or 'a process'}, host pid {incident['pid']}"
    where.append(process if incident["pid"] else "process not told")
    rows = [("who", " · ".join(where))]
    if incident["meaning"]:
        rows.insert(0, ("what", str(incident["meaning"])))
    told = [message.get(name) for name in ("access", "fault_type", "address", "engine")]
    if any(told):
        rows.append(("fault", " ".join(str(one) for one in told if one)))
    if message.get("body"):
        rows.append(("text", str(message["body"])))
    counts = ", ".join(f"{code} × {count}" for code, count in incident["counts"].items())
    rows.append(("seen", f"{counts} by {' and '.join(incident['sources'])}"))
    rows.append(("action", str(incident["action"])))
    for label, said in rows:
        out.print(Text.assemble((f"  {label:6} ", "dim"), printable(said)), soft_wrap=True)


def print_sources(out: Console, watched: Sequence[Record]) -> None:
    """Each source, and why its silence says nothing where it does not."""
    for one in watched:
        if one["observable"]:
            out.print(Text(f"  {one['source']}: observed throughout", "dim"))
            continue
        out.print(
            Text(printable(f"  {one['source']}: not observable: {one['reason']}"), "yellow"),
            soft_wrap=True,
        )
        if one["hint"]:
            out.print(Text(printable(f"    hint: {one['hint']}"), "dim"), soft_wrap=True)
