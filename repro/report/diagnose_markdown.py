"""A diagnosis as Markdown, to paste into an issue; written from the stored record alone.

What the log said stands in code spans with nothing in it that Markdown, a mention or a reference
could act upon; what must not leave a machine is taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..escape import printable
from . import diagnose_words as words
from .redact import redact, summary, this_machine

Record = Mapping[str, Any]

# What Markdown reads as markup, and what GitHub makes a mention or reference of.
ACTIVE = re.compile(r"([\\`*_\[\]<>#|~@&])")


def diagnosis_markdown(record: Record) -> str:
    """The whole text, redacted."""
    text = "\n".join(_lines(record)) + "\n"
    redacted = redact(text, this_machine())
    if not redacted.removed:
        return redacted.text
    return f"{redacted.text}\n<!-- removed: {summary(redacted.removed)} -->\n"


def plain(text: str) -> str:
    """`text` so that Markdown shows it as it is."""
    return ACTIVE.sub(r"\\\1", printable(text)).replace("\\@", "@\u200b")


def code(text: str) -> str:
    """A line of code, whatever backquotes it holds."""
    shown = printable(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _lines(record: Record) -> Iterator[str]:
    run = record["run"]
    yield f"**specrepro {plain(run['version'])} diagnose** — {plain(words.headline(record))}"
    yield ""
    yield f"- **First failure:** {plain(words.first(record))}"
    for remark in words.remarks(record):
        yield f"  - {plain(remark)}"
    for title, rows in (("Then", record["cascade"]), ("Beside", record["beside"])):
        if rows:
            yield f"- **{title}:** " + "; ".join(plain(words.event(row)) for row in rows[:6])
    if record["classes"]:
        yield ""
        yield from _classes(record)
    if record["missing"]:
        yield ""
        yield "**Missing** (please add):"
        yield ""
        yield from (f"- [ ] {plain(row['ask'])}: {code(row['how'])}" for row in record["missing"])
    if record["experiments"]:
        yield ""
        yield "**Next**, one lever at a time:"
        yield ""
        for number, row in enumerate(record["experiments"], start=1):
            yield f"{number}. {code(row['command'])}"
            yield f"   {plain(words.experiment(row))}"
    lines = words.cases(record)
    if lines:
        yield ""
        yield "```sh"
        yield from (printable(line) for line in lines)
        yield "```"
    if record["unread"]:
        yield ""
        said = "; ".join(f"{row['count']} × {row['what']}" for row in record["unread"][:5])
        yield f"Not read: {plain(said)}"


def _classes(record: Record) -> Iterator[str]:
    yield "| standing | class | for | against |"
    yield "| --- | --- | --- | --- |"
    rows = [*words.standing(record, *words.OPEN), *words.excluded(record)]
    for row in rows:
        pro = "<br>".join(plain(words.statement(s)) for s in row["for"])
        contra = "<br>".join(plain(words.statement(s)) for s in row["against"])
        if row["standing"] == "excluded":
            pro = ""
        yield f"| {row['standing']} | {code(row['id'])} | {pro} | {contra} |"
    rest = words.unknown(record)
    if rest:
        yield f"| unknown | {plain(rest)} | | |"
