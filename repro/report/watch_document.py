"""The report of a command that was run under the watchers, from its stored record alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from .collected import folded, unknown
from .document import (
    Block,
    Bullets,
    Code,
    Document,
    Facts,
    Folded,
    Line,
    Moment,
    Section,
    Strong,
    Table,
    Timeline,
)

Record = Mapping[str, Any]

KERNEL_LOG = "kernel log"  # as a source is called in a record
TONES = {"consequence": "plain", "information": "plain"}


def watch_document(record: Record) -> Document:
    """How the command ended, what the driver said meanwhile, and what could not be seen."""
    incidents, run = record["incidents"], record["run"]
    parts: list[Block] = [Facts(list(_about(record)))]
    if incidents:
        moments = [
            Moment(
                f"{one['at']} GPU {one['bus'] or '?'}",
                f"Xid {one['code']} {one['mnemonic'] or 'unknown code'}",
                TONES.get(str(one["class"]), "bad"),
            )
            for one in incidents
        ]
        parts.append(Timeline("Incidents", moments))
        parts += [
            Section(f"Xid {one['code']} at {one['at']}", [Facts(list(_incident(one)))])
            for one in incidents
        ]
    blind = [one for one in record["watched"] if not one["observable"]]
    lines: list[Line] = [(f"{one['source']}: {one['reason']}",) for one in blind]
    if gap := unknown(record.get("collect_env")):
        lines.append((gap,))
    if lines:
        parts.append(Section("Not observed", [Bullets(lines)]))
    parts.append(Section("Look closer", [Code(_diagnose(record), "sh")]))
    parts.append(Folded("GPUs and variables", list(_machine(record))))
    parts += folded(record.get("collect_env"))
    return Document(
        title="specrepro watch",
        result=_sentence(record, len(blind) == len(record["watched"])),
        tone="bad" if incidents or record["status"] else "plain",
        parts=parts,
        whole=f"specrepro runs show {run['id']} --json",
        run=str(run["id"]),
        version=str(run["version"]),
    )


def _sentence(record: Record, blind: bool) -> Line:
    ended: Line = ("The command ended with status ", Strong(str(record["status"])), "; ")
    count = len(record["incidents"])
    if count:
        return (*ended, Strong(f"{count} Xid incident{'s'[: count != 1]}"), " meanwhile.")
    return (*ended, "no Xid could have been seen." if blind else "no Xid was seen.")


def _diagnose(record: Record) -> str:
    """The command that reads this run's logs: by `latest` it would be another's before long."""
    log = PurePosixPath(str(record["log"]["path"]))
    words = [str(log)]
    if any(KERNEL_LOG in one["sources"] for one in record["incidents"]):
        words.append(str(log.with_name("kernel.log")))
    # a home directory is written `~`, which a shell reads only without quotes
    shown = ["~/" + shlex.quote(w[2:]) if w.startswith("~/") else shlex.quote(w) for w in words]
    return " ".join(("specrepro", "diagnose", *shown))


def _about(record: Record) -> Iterator[tuple[str, Line]]:
    yield "command", (shlex.join(map(str, record["words"])),)
    gpus = record["gpus"]["after"]
    names = ", ".join(str(gpu["name"] or "name not told") for gpu in gpus["gpus"])
    yield "GPUs", (names or str(gpus["reason"]),)
    if gpus["driver"]:
        yield "driver", (f"{gpus['driver']}, CUDA {gpus['cuda'] or '?'}",)
    yield "started", (str(record["run"]["started"]),)
    yield "seconds", (f"{record['run']['seconds']:g}",)


def _incident(one: Record) -> Iterator[tuple[str, Line]]:
    message = one["message"] or {}
    if one["meaning"]:
        yield "what", (f"{one['meaning']} ({one['class']})",)
    process = f"{one['process'] or 'a process'}, host pid {one['pid']}"
    yield "whose", (process if one["pid"] else "not told",)
    told = [message.get(key) for key in ("access", "fault_type", "address", "engine", "client")]
    if any(told):
        yield "fault", (" ".join(str(part) for part in told if part),)
    if message.get("body"):
        yield "text", (str(message["body"]),)
    counts = ", ".join(f"{code} × {count}" for code, count in one["counts"].items())
    yield "seen", (f"{counts}, by {' and '.join(map(str, one['sources']))}",)
    yield "action", (str(one["action"]),)


def _machine(record: Record) -> Iterator[Block]:
    rows: list[list[Line]] = []
    for gpu in record["gpus"]["after"]["gpus"]:
        free = "?" if gpu["free"] is None else f"{gpu['free'] / 2**30:.0f} GiB"
        others = gpu["processes"]
        rows.append(
            [
                (str(gpu["index"]),),
                (str(gpu["name"]),),
                (str(gpu["bus"]),),
                (free,),
                ("?" if others is None else str(len(others)),),
                (str(gpu["recovery"] or "?"),),
            ]
        )
    if rows:
        yield Table(["GPU", "name", "PCI", "free after", "processes", "recovery"], rows)
    variables: list[tuple[str, Line]] = [
        (str(name), (str(value),)) for name, value in record["variables"].items()
    ]
    yield Facts(variables or [("variables", ("none that an engine goes by",))])
