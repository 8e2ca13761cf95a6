"""The report of a diagnosis, from its stored record alone: what an issue needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import diagnose_words as words
from .document import Block, Bullets, Code, Document, Facts, Line, Mono, Paragraph, Section, Table

Record = Mapping[str, Any]

TONES = {"likely": "bad", "possible": "unknown"}
MOST_EVENTS = 6
MOST_INCIDENTS = 20


def diagnose_document(record: Record) -> Document:
    """First failure, classes, what is missing, what to try next."""
    run = record["run"]
    open_ = words.standing(record, *words.OPEN)
    parts: list[Block] = [Facts(list(_facts(record)))]
    if record["classes"]:
        parts.append(_table(record))
        rest = words.unknown(record)
        parts += [Paragraph((rest,))] if rest else []
    if record["missing"]:
        asked: list[Line] = [(f"{row['ask']}: ", Mono(row["how"])) for row in record["missing"]]
        parts.append(Section("Missing", [Bullets(asked)]))
    if record["experiments"]:
        parts.append(Section("Next, one lever at a time", list(_experiments(record))))
    lines = words.cases(record)
    if lines:
        parts.append(Section("Check and replay", [Code("\n".join(lines), "sh")]))
    others = record["incidents"]
    if len(others) > 1:
        said: list[Line] = [
            (f"{row['count']} × {row['signature']}  {words.cluster(row)}",)
            for row in others[:MOST_INCIDENTS]
        ]
        parts.append(Section("Incidents", [Bullets(said)]))
    if record["unread"]:
        told: list[Line] = [(f"{r['count']} × {r['what']}",) for r in record["unread"][:5]]
        parts.append(Section("Not read", [Bullets(told)]))
    return Document(
        title="specrepro diagnose",
        result=_result(record, open_),
        tone=TONES[open_[0]["standing"]] if open_ else "unknown",
        parts=parts,
        whole=f"specrepro runs show {run['id']} --json",
        run=str(run["id"]),
        version=str(run["version"]),
    )


def _result(record: Record, open_: list[Record]) -> Line:
    if not open_:
        return ("No known fault class fits what was read.",)
    names: list[Any] = []
    for row in open_[:3]:
        names += [", " if names else "", Mono(row["id"]), f" is {row['standing']}"]
    return (*names[1:], ".")


def _facts(record: Record) -> Iterator[tuple[str, Line]]:
    yield "engine", (words.headline(record),)
    yield "first failure", (words.first(record),)
    for remark in words.remarks(record):
        yield "", (remark,)
    for name, rows in (("then", record["cascade"]), ("beside", record["beside"])):
        for number, row in enumerate(rows[:MOST_EVENTS]):
            yield name if number == 0 else "", (words.event(row),)
    for row in record["misleading"]:
        yield "not evidence", (words.statement({**row, "text": row["why"], "how": ""}),)


def _table(record: Record) -> Table:
    rows: list[list[Line]] = []
    for row in [*words.standing(record, *words.OPEN), *words.excluded(record)]:
        shut = row["standing"] == "excluded"
        pro = "" if shut else words.joined(words.statement(s) for s in row["for"])
        contra = words.joined(words.statement(s) for s in row["against"])
        if row["unmet"]:
            contra = words.joined(
                [t for t in (contra, f"not known: {'; '.join(row['unmet'])}") if t]
            )
        rows.append([(row["standing"],), (Mono(row["id"]),), (pro,), (contra,)])
    return Table(["standing", "class", "for", "against"], rows)


def _experiments(record: Record) -> Iterator[Block]:
    for number, row in enumerate(record["experiments"], start=1):
        yield Paragraph((f"{number}. {words.experiment(row)}",))
        if row["command"]:
            yield Code(row["command"], "sh")
