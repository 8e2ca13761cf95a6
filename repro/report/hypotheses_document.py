"""Hypotheses of a case against the experiments of its report, as parts of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .document import Block, Bullets, Code, Line, Mono, Paragraph, Section, Strong, Table
from .matrix_page import word

Record = Mapping[str, Any]

SHOWN = 3  # experiments proposed
LEGEND = "✓ as reported · ✗ contradicts the report · ? not observed · @1: that stage first"


def hypotheses(case: Record) -> Section | None:
    """The section; None for a case without hypotheses."""
    said = case["hypotheses"]
    if not said:
        return None
    controls = [c for c in said["controls"] if c["reported"] or c["facts"]]
    rows: list[list[Line]] = [
        [("the report",), *((Strong(_reported(control)),) for control in controls)]
    ]
    for row in said["matrix"]:
        cells = {cell["control"]: cell for cell in row["cells"]}
        name = Mono(str(row["variant"]))
        rows.append([(name,), *((_cell(cells[c["id"]]),) for c in controls)])
    parts: list[Block] = [
        Table(["", *(str(control["id"]) for control in controls)], rows, LEGEND),
        Bullets([(Mono(str(c["id"])), f": {c['title']}") for c in controls]),
        Bullets([_titled(row) for row in said["matrix"]]),
        *_standing(case, said),
        *_next(said),
    ]
    return Section("Hypotheses against the experiments of the report", parts)


def _titled(row: Record) -> Line:
    needs = f" (needs {row['needs']})" if row["needs"] else ""
    return (Mono(str(row["variant"])), f": {row['title']}{needs}")


def _reported(control: Record) -> str:
    reported = control["reported"]
    return word(reported["outcome"], reported["stage"]) if reported else "facts"


def _cell(cell: Record) -> str:
    if cell["meets"] is None:
        return "?"
    outcome = cell["outcome"]
    said = f" {word(outcome['kind'], outcome['stage'])}" if outcome else ""
    return ("✓" if cell["meets"] else "✗") + said


def _standing(case: Record, said: Record) -> Iterator[Block]:
    lines: list[Line] = [
        (Mono(str(entry["variant"])), f" is out by {', '.join(map(str, entry['by']))}")
        for entry in said["out"]
    ]
    lines += [
        (Mono(str(name)), " is undecided: not every reported experiment was observed")
        for name in said["undecided"]
    ]
    yield Bullets(lines)
    survive = ", ".join(map(str, said["survive"])) or "none of those that ran"
    yield Paragraph(
        (
            Strong(f"Left: {survive}."),
            f" Consistency is not proof: the cause of the report stays {case['cause']}.",
        )
    )


def _next(said: Record) -> Iterator[Block]:
    for entry in said["next"][:SHOWN]:
        told = ", ".join(
            f"{name} {word(o['kind'], o['stage'])}" for name, o in entry["outcomes"].items()
        )
        yield Paragraph(
            (
                "Next: ",
                Strong(str(entry["title"])),
                f" ({entry['bits']:g} bit). It would say: {told}.",
            )
        )
        yield Code(str(entry["command"]), "sh")
