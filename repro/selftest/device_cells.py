"""What a GPU lane made of a planted fault, as a cell of the table. Pure.

A device stops at its first fault and often says no more than an error: then the error must be the
one of the kind that was planted. A tool that names elements must name none that is not among the
planted ones; it may name fewer, because it ends the context at the first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..coredump import fault_of
from ..lanes.catalog import BOUNDS, CATALOG
from ..records import Evidence, Finding, Kind, Seen, Status, TrialResult
from .cells import XID, Cell, State, told
from .faults import Fault

# The error of a call of the driver, and what the name of a dump's exception says, by kind.
CODES: Mapping[Kind, int] = {
    Kind.OUT_OF_BOUNDS_READ: 700,
    Kind.OUT_OF_BOUNDS_WRITE: 700,
    Kind.MISALIGNED_ACCESS: 716,
    Kind.TRAP: 710,
}
DUMPED: Mapping[Kind, str] = {
    Kind.OUT_OF_BOUNDS_READ: "illegal_access",
    Kind.OUT_OF_BOUNDS_WRITE: "illegal_access",
    Kind.MISALIGNED_ACCESS: "misaligned_access",
    Kind.TRAP: "device_assert",
}
# Faults that the driver reports by an Xid on every device; a failed assertion it need not.
REPORTED = BOUNDS | {Kind.MISALIGNED_ACCESS}
_CODE = re.compile(r"\((\d{1,6})\) from ")


def device_cell(fault: Fault, lane: str, result: TrialResult, lines: Sequence[int]) -> Cell:
    """The cell of a lane that ran. fault: as it is planted on a device. lines: of planted.cu that
    are at fault."""
    state, ok, detail = _judged(fault, lane, result, lines)
    return Cell(lane, state, ok, detail, round(result.seconds, 2))


def xid_cell(fault: Fault, result: TrialResult) -> Cell | None:
    """What the watchers saw while a trial ran; None where this one says nothing of them."""
    told_of = [one for one in result.evidence if one.source.startswith("Xid")]
    seen = [one for one in told_of if one.state is Seen.SEEN]
    silent = [one for one in told_of if one.state is Seen.NONE]
    if fault.kind is not None and fault.kind not in CODES:
        return None
    if not seen and not silent:
        return Cell(XID, State.NOT_RUN, True, "; ".join(_named(one) for one in told_of))
    said = "; ".join(_named(one) for one in (seen or silent))
    if fault.kind is None:
        state = State.FALSE if seen else State.CLEAN
        return Cell(XID, state, not seen, said if seen else "")
    if seen:
        return Cell(XID, State.SEEN, True, said)
    ok = fault.kind not in REPORTED
    return Cell(XID, State.NOT_SEEN, ok, said + ("; the driver need not report it" if ok else ""))


def _judged(
    fault: Fault, lane: str, result: TrialResult, lines: Sequence[int]
) -> tuple[State, bool, str]:
    said = result.reason or told(result.findings) or _first(result.evidence)
    if fault.kind is Kind.HANG:
        if result.status is Status.TIMEOUT:
            return State.UNKNOWN, True, f"{said}; unknown, as it must be"
        return State.NOT_SEEN, False, f"a hang must be unknown, but {said}"
    if result.status not in (Status.FAULT, Status.CLEAN):
        return State.UNKNOWN, False, said
    if fault.kind is None:
        if result.status is Status.CLEAN:
            return State.CLEAN, True, ""
        return State.FALSE, False, f"of what is right it says: {said}"
    if result.status is Status.CLEAN:
        return State.NOT_SEEN, False, "no finding"
    if lane == "coredump":
        wrong, said = _dumped(fault.kind, result)
    elif result.findings:
        wrong = next((why for f in result.findings if (why := _amiss(fault, lane, f, lines))), "")
        said = told(result.findings)
    elif lane in ("plain", "blocking"):
        wrong = _error(fault.kind, said)
    else:
        wrong = f"it names no access: {said}"
    return (State.NOT_SEEN, False, wrong) if wrong else (State.SEEN, True, said)


def _error(kind: Kind, said: str) -> str:
    """What is wrong with an error of the driver, "" where it is the one of this kind."""
    found = _CODE.search(said)
    if found is None or int(found[1]) != CODES[kind]:
        return f"not error {CODES[kind]}: {said}"
    return ""


def _dumped(kind: Kind, result: TrialResult) -> tuple[str, str]:
    """The same of a core dump, and what it says."""
    dump = next((one.detail for one in result.evidence if one.source == "core dump"), "")
    if fault_of(dump.split(" · ", 1)[0]) != DUMPED[kind]:
        return f"not of this fault: {dump or 'no core dump'}", dump
    return "", dump


def _amiss(fault: Fault, lane: str, finding: Finding, lines: Sequence[int]) -> str:
    """What is wrong with a record of a tool, "" where it is of what was planted."""
    if finding.kind is not fault.kind:
        return f"instead it says: {told([finding])}"
    if fault.kind in CATALOG[lane].locates and fault.elements is not None:
        if finding.tensor != fault.tensor or finding.elements is None:
            return f"at no known place: {told([finding])}"
        (first, last), (least, most) = finding.elements, fault.elements
        if not least <= first <= last <= most:
            return f"at another place: {told([finding])}"
    if finding.source is not None and finding.source.line not in lines:
        return f"at another line: {told([finding])}"
    return ""


def _first(evidence: Sequence[Evidence]) -> str:
    return next((one.detail for one in evidence if one.state is Seen.SEEN), "a fault")


def _named(one: Evidence) -> str:
    return f"{one.source.removeprefix('Xid by ')}: {one.detail.removeprefix('Xid ')}"
