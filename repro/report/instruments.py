"""What every instrument said of one fault, for a page of any kind; contradictions first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .document import Block, Line, Mono, Paragraph, Strong, Table

Record = Mapping[str, Any]
AGREES = {True: "✓", False: "✗", None: "–"}
LEGEND = "✓ as the reference · ✗ otherwise than the reference · – cannot be told from it"


@dataclass(frozen=True, slots=True)
class Instrument:
    """name: with the lanes in which it said the same. said: what it located, and a note."""

    name: str
    observed: str
    agrees: bool | None
    said: str


def instruments(case: Record) -> list[Instrument]:
    """The joined rows of a case, those that say the same put together; [] where nothing ran on a
    device."""
    joined = case.get("join")
    told: dict[tuple[str, str, bool | None, str], list[str]] = {}
    for row in joined["rows"] if joined else ():
        said = " · ".join(part for part in (row["located"], row["note"]) if part)
        key = row["instrument"], row["observed"], row["agrees"], said
        told.setdefault(key, []).append(row["lane"])
    rows = []
    for (name, observed, agrees, said), lanes in told.items():
        others = [lane for lane in lanes if lane not in name]
        rows.append(
            Instrument(
                name + (f" ({', '.join(others)})" if others else ""), observed, agrees, said or "–"
            )
        )
    return rows


def instrument_table(case: Record) -> Iterator[Block]:
    """The same as parts of a document."""
    rows: list[list[Line]] = []
    for row in instruments(case):
        agrees: Line = (Strong(AGREES[False]),) if row.agrees is False else (AGREES[row.agrees],)
        rows.append([(row.name,), (row.observed,), agrees, (row.said,)])
    if not rows:
        return
    yield Table(["instrument", "observed", "agrees", "located"], rows, LEGEND)
    writer = case["join"]["first_writer"]
    if writer:
        yield Paragraph(("First writer: ", Mono(str(writer))))
