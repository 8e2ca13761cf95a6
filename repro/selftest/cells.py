"""What an instrument made of a planted fault, as a cell of the table. Pure.

A fault counts as seen where the findings are those that were planted, at the place where they were
planted, and no others. What was not looked at to its end is unknown, and no success.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..lanes.catalog import CATALOG, Lane
from ..records import Finding, Kind
from .faults import FAULTS, Fault

XID = "Xid"
INSTRUMENTS = (*CATALOG, XID)
# Both limits say so: that of the emulator's instructions and that of the time of a child.
LIMIT = "end within"


class State(StrEnum):
    """The words of the table."""

    SEEN = "seen"
    NOT_SEEN = "not seen"
    CLEAN = "clean"
    FALSE = "false finding"
    UNKNOWN = "unknown"
    CANNOT = "cannot see"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Observed:
    """What an instrument that ran left. warnings: said of the launch beside findings. reason: why
    it was not looked at to its end, "" where it was.
    """

    findings: tuple[Finding, ...] = ()
    warnings: int = 0
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault in one instrument. ok: nothing is wrong with the instrument. detail: one line."""

    instrument: str
    state: State
    ok: bool
    detail: str
    seconds: float = 0.0


def runs(fault: Fault, instrument: str) -> bool:
    """Whether the fault is worth planting for an instrument that needs no device."""
    lane = CATALOG.get(instrument)
    if lane is None or lane.device:
        return False
    # A hang is found by none, and must not come out as anything else where kernels run.
    return fault.kind is None or sees(fault, lane) or (fault.kind is Kind.HANG and lane.kernels)


def cell_without_run(fault: Fault, instrument: str, reason: str) -> Cell:
    """The cell of an instrument in which the fault is not planted. reason: why no device lane is
    run.
    """
    lane = CATALOG.get(instrument, CATALOG["plain"])  # an Xid is of what the device itself refuses
    if fault.kind is None or sees(fault, lane):
        return Cell(instrument, State.NOT_RUN, True, reason)
    return Cell(instrument, State.CANNOT, True, _why_not(fault, instrument, lane.device))


def cell(fault: Fault, instrument: str, seen: Observed, lines: Sequence[int]) -> Cell:
    """The cell of an instrument that ran. lines: of planted.cu that are at fault."""
    state, ok, detail = _judged(fault, CATALOG[instrument], seen, lines)
    return Cell(instrument, state, ok, detail, seen.seconds)


def all_seen(rows: Sequence[tuple[Fault, Sequence[Cell]]], *, some: bool = False) -> bool:
    """Whether every instrument that ran did what it must, and no fault that can be seen was left to
    instruments that did not run. False where a fault is missing.

    some: only some instruments were asked for, so that what nobody looked for is no failure.
    """
    complete = {fault.name for fault, _ in rows} == {fault.name for fault in FAULTS}
    looked = [_looked(fault, cells) for fault, cells in rows]
    enough = any(looked) if some else all(looked)
    return complete and enough and all(cell.ok for _, cells in rows for cell in cells)


def _looked(fault: Fault, cells: Sequence[Cell]) -> bool:
    return any(c.state in (State.SEEN, State.CLEAN) or _hung(fault, c) for c in cells)


def _hung(fault: Fault, cell: Cell) -> bool:
    return fault.kind is Kind.HANG and cell.state is State.UNKNOWN


def sees(fault: Fault, lane: Lane) -> bool:
    """Whether a lane that sees the kind sees it where this fault has it."""
    return fault.kind in lane.sees and not (fault.hidden and lane.device)


def _why_not(fault: Fault, instrument: str, device: bool) -> str:
    if fault.hidden and device:
        return fault.hidden
    if fault.kind is Kind.HANG:
        return "no lane reports a hang"
    return f"{instrument} does not show {fault.kind}"


def _judged(
    fault: Fault, lane: Lane, seen: Observed, lines: Sequence[int]
) -> tuple[State, bool, str]:
    if fault.kind is None:
        if seen.findings or seen.warnings:
            said = told(seen.findings) or f"{seen.warnings} warnings"
            return State.FALSE, False, f"of what is right it says: {said}"
        return (State.UNKNOWN, False, seen.reason) if seen.reason else (State.CLEAN, True, "")
    if fault.kind is Kind.HANG:
        if LIMIT in seen.reason and not seen.findings:
            return State.UNKNOWN, True, f"{seen.reason}; unknown, as it must be"
        said = seen.reason or told(seen.findings) or "it came out as clean"
        return State.NOT_SEEN, False, f"a hang must be unknown, but {said}"
    if seen.reason:
        return State.UNKNOWN, False, seen.reason
    wrong = next((why for f in seen.findings if (why := _amiss(fault, lane, f, lines))), "")
    if not seen.findings:
        return State.NOT_SEEN, False, "no finding"
    if wrong:
        return State.NOT_SEEN, False, wrong
    return State.SEEN, True, told(seen.findings)


def _amiss(fault: Fault, lane: Lane, finding: Finding, lines: Sequence[int]) -> str:
    """What is wrong with a finding of this fault, "" where it is the one that was planted."""
    if finding.kind is not fault.kind:
        return f"instead it says: {told([finding])}"
    if (finding.tensor, finding.elements) != (fault.tensor, fault.elements):
        return f"at another place: {told([finding])}"
    if finding.bytes_past_end != fault.past:
        return f"{finding.bytes_past_end} bytes past the end, not {fault.past}: {told([finding])}"
    if lane.kernels and (finding.source is None or finding.source.line not in lines):
        return f"at another line: {told([finding])}"
    return ""


def told(findings: Sequence[Finding]) -> str:
    """Findings on one line: kind, elements, line."""
    said = []
    for one in findings[:3]:
        text = str(one.kind)
        if one.elements is not None:
            unit = f" of {one.tensor}" if one.tensor else ""
            text += f" at {one.elements[0]} to {one.elements[1]}{unit}"
        if one.source is not None:
            text += f" ({one.source.file}:{one.source.line})"
        said.append(text)
    return "; ".join(said)
