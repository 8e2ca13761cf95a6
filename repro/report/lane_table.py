"""Variant by lane, of a run in a terminal: what each lane made of the case's own point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ..escape import printable

Record = Mapping[str, Any]
Column = tuple[str, list[Text]]  # its head, a cell a variant

STATUS_STYLE = {"fault": "magenta", "clean": "green", "skipped": "dim"}
HOST_LANES = ("reference", "emulator")
TOGETHER = "GPU lanes"


@dataclass(frozen=True, slots=True)
class LaneTable:
    """Variant by lane at the case's own point; a sweep has its grid instead.

    Lanes of which none did anything are one column, and the legend says which they are and why.
    What is wider than the page goes on in a table below.
    """

    case: Record

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        variants = list(dict.fromkeys(str(t["variant"]) for t in own_trials(self.case)))
        for part in _fitting(variants, _columns(self.case, variants), options.max_width):
            yield _side_by_side(variants, part)


def _columns(case: Record, variants: Sequence[str]) -> list[Column]:
    idle = _idle(case)
    columns: list[Column] = []
    for lane in (str(name) for name in case["lanes"]):
        if lane not in idle:
            columns.append((lane, [_cell(case, variant, lane) for variant in variants]))
        elif lane == idle[0]:
            name = lane if len(idle) == 1 else TOGETHER
            columns.append((name, [Text("–", "dim") for _ in variants]))
    return [*columns, ("Xid", [_xid(case, variant) for variant in variants])]


def _idle(case: Record) -> list[str]:
    """The lanes on a GPU, where none of them did anything."""
    ran = {str(t["lane"]) for t in own_trials(case) if t["status"] != "skipped"}
    lanes = [str(lane) for lane in case["lanes"] if lane not in HOST_LANES]
    return [] if ran & set(lanes) else lanes


def _fitting(
    variants: Sequence[str], columns: Sequence[Column], width: int
) -> Iterator[list[Column]]:
    """The columns, as many of them side by side as `width` holds, but one at least."""
    left = max(len(variant) for variant in variants) + 2
    part: list[Column] = []
    used = left
    for name, cells in columns:
        needed = max(len(name), *(cell.cell_len for cell in cells))
        if part and used + needed > width:
            yield part
            part, used = [], left
        part.append((name, cells))
        used += needed + 2
    yield part


def _side_by_side(variants: Sequence[str], columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    for name, _ in columns:
        table.add_column(name)
    for row, variant in enumerate(variants):
        table.add_row(printable(variant), *(cells[row] for _, cells in columns))
    return table


def _xid(case: Record, variant: str) -> Text:
    """What the driver's log showed while a variant ran: an Xid, nothing, or nobody looked."""
    seen = [
        one
        for trial in own_trials(case)
        if trial["variant"] == variant
        for one in trial["evidence"]
        if one["source"].startswith("Xid")
    ]
    told = [one["detail"].removeprefix("Xid ") for one in seen if one["state"] == "seen"]
    if told:
        return Text(printable(told[0]), "magenta")
    none = any(one["state"] == "none while observable" for one in seen)
    return Text("none" if none else "–", "dim")


def own_trials(case: Record) -> list[Record]:
    """Trials at the case's own point; hypotheses have their matrix instead."""
    at_own = [trial for trial in case["trials"] if trial["point"] == case["named"]]
    return [trial for trial in at_own if trial["control"] is None]


def _cell(case: Record, variant: str, lane: str) -> Text:
    trial = next(t for t in own_trials(case) if (t["variant"], t["lane"]) == (variant, lane))
    if trial["status"] == "skipped":
        return Text("–", "dim")
    text = Text(trial["status"], STATUS_STYLE.get(trial["status"], "yellow"))
    if trial["agrees_with_reference"]:
        text.append(" ✓")
    if trial["stopped"]:
        text.append(" …", "yellow")
    if not trial["as_expected"] and (not trial["stopped"] or _on_device(trial)):
        text.append(" ✗", "bold red")
    return text


def _on_device(trial: Record) -> bool:
    """Whether a trial ran on a GPU, where the first fault ends it, asked for or not."""
    return any(one["source"] == "CUDA" for one in trial["evidence"])


def legend(case: Record) -> Text:
    """What the marks of the table mean, and why lanes did not run."""
    marks = []
    if any(t["agrees_with_reference"] for t in case["trials"]):
        marks.append("✓ same launch, tensor, elements and step as the reference")
    if not any(
        t["lane"] == "reference" and t["status"] in ("fault", "clean") for t in case["trials"]
    ):
        marks.append("not compared with the reference")
    if any(
        t["status"] != "skipped" and not t["as_expected"] and not t["stopped"]
        for t in case["trials"]
    ):
        marks.append("✗ not as expected")
    if any(t["stopped"] for t in case["trials"]):
        marks.append("… stopped at its first fault")
    skipped: dict[str, dict[str, None]] = {}
    for trial in own_trials(case):
        if trial["status"] == "skipped":
            skipped.setdefault(str(trial["reason"]), {})[str(trial["lane"])] = None
    if skipped:
        said = (f"{', '.join(lanes)}: {reason}" for reason, lanes in skipped.items())
        marks.append(f"– not run: {'; '.join(said)}")
    if not skipped:
        marks.append("– not observed")
    return Text("     ".join(printable(mark) for mark in marks), "dim")
