"""What every instrument said of one fault, side by side. Pure.

No instrument sees all of it: the launch-blocking error names a call and no index, the sanitizer an
address, the kernel log an address and no kernel, a dump a kernel and no tensor. Each is held
against the accesses of the reference by what it can tell, and says what it could not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .agreement import beyond, places, spans
from .lanes.catalog import CATALOG, OUTCOMES
from .records import Evidence, Finding, Place, Seen, Status, TrialResult

SANITIZER, ERROR, XID = "compute-sanitizer", "CUDA", "Xid"
DECIDED = (Status.FAULT, Status.CLEAN)


@dataclass(frozen=True, slots=True)
class Row:
    """One instrument. observed: `fault`, `none`, or `unobservable`. located: what it names of the
    fault, "" for nothing. agrees: with the reference; None where that cannot be told. note: why
    not, or what it could not see."""

    instrument: str
    lane: str
    observed: str
    located: str
    agrees: bool | None
    note: str


@dataclass(frozen=True, slots=True)
class Join:
    """rows: contradictions first. first_writer: the reference's first access that writes, in the
    order of launches, in words; "" where nothing wrote, or no reference ran."""

    rows: tuple[Row, ...]
    first_writer: str


def join(results: Mapping[str, TrialResult], agreeing: Sequence[str] = ()) -> Join:
    """Put together what the lanes of one variant at one point saw.

    results: by lane. agreeing: lanes whose accesses are the reference's, of those that name all.
    """
    reference = results.get("reference")
    known = reference.findings if reference is not None and reference.status in DECIDED else ()
    rows: list[Row] = []
    for lane, result in results.items():
        if result.status is Status.SKIPPED:
            continue
        if CATALOG[lane].device:
            rows += of_device(lane, result, known)
        elif CATALOG[lane].kernels:
            rows.append(_of_host(lane, result, lane in agreeing, bool(known)))
    order = {False: 0, True: 1, None: 2}
    return Join(tuple(sorted(rows, key=lambda row: order[row.agrees])), _first_writer(known))


def contradictions(lane: str, result: TrialResult, reference: Sequence[Finding]) -> list[str]:
    """What instruments of a device lane say against the reference, a sentence each."""
    return [
        f"{row.instrument}: {row.note}"
        for row in of_device(lane, result, reference)
        if row.agrees is False
    ]


def of_device(lane: str, result: TrialResult, reference: Sequence[Finding]) -> list[Row]:
    """A row for each instrument of a trial on a device."""
    ends = CATALOG[lane].sees - OUTCOMES  # what ends a context, or the tool names
    own = next(
        (one.place.pid for one in result.evidence if one.source == ERROR and one.place), None
    )
    rows = []
    for one in result.evidence:
        if one.source.startswith(SANITIZER):
            rows.append(_of_tool(lane, one, result.findings, reference))
        elif one.source in (ERROR, "core dump") or one.source.startswith(XID):
            known = [finding for finding in reference if finding.kind in ends]
            rows.append(_of_source(lane, one, known, own))
    return rows


def _of_host(lane: str, result: TrialResult, agrees: bool, compared: bool) -> Row:
    if result.status not in DECIDED:
        return Row(lane, lane, "unobservable", "", None, result.reason)
    located = [f for f in result.findings if f.kind not in OUTCOMES and f.elements]
    said = _finding(located[0]) if located else ""
    observed = "fault" if result.findings else "none"
    note = "" if agrees or not compared else "names other accesses than the reference"
    return Row(lane, lane, observed, said, agrees if compared else None, note)


def _of_tool(
    lane: str, one: Evidence, findings: Sequence[Finding], reference: Sequence[Finding]
) -> Row:
    kinds = CATALOG[lane].locates - OUTCOMES
    theirs = places(findings, kinds)
    named = [f for f in findings if f.kind in kinds and f.tensor is not None]
    if not named:
        note = one.detail if one.state is Seen.UNOBSERVABLE else "names no tensor"
        return Row(one.source, lane, _observed(one), "", None, "" if _none(one) else note)
    if not reference:
        return Row(one.source, lane, _observed(one), _finding(named[0]), None, "no reference")
    stray = beyond(places(reference, kinds), theirs)
    note = f"the reference does not have {stray}" if stray else ""
    return Row(one.source, lane, _observed(one), _finding(named[0]), not stray, note)


def _of_source(lane: str, one: Evidence, known: Sequence[Finding], own: int | None) -> Row:
    instrument = {ERROR: "launch error"}.get(one.source, one.source)
    place = one.place
    if one.state is not Seen.SEEN or place is None:
        note = one.detail if one.state is Seen.UNOBSERVABLE else ""
        return Row(instrument, lane, _observed(one), "", None, note)
    located, missing = _told(place, own if one.source.startswith(XID) else None)
    if not (place.launches or place.op or place.tensors) or not known:
        note = "no reference" if not known else missing
        return Row(instrument, lane, _observed(one), located, None, note)
    if any(_fits(place, finding) for finding in known):
        return Row(instrument, lane, _observed(one), located, True, missing)
    note = f"the reference has no such access ({located})"
    return Row(instrument, lane, _observed(one), located, False, note)


def _fits(place: Place, finding: Finding) -> bool:
    return (
        (place.launches is None or place.launches[0] <= finding.launch <= place.launches[1])
        and (place.op is None or place.op == finding.op)
        and (not place.tensors or finding.tensor in place.tensors)
        and (place.access is None or place.access in str(finding.kind))
    )


def _told(place: Place, own: int | None) -> tuple[str, str]:
    """What a place names, and what it does not."""
    words, missing = [], []
    if place.launches is None:
        missing.append("launch")
    elif place.launches[0] == place.launches[1]:
        words.append(f"launch {place.launches[0]}")
    else:
        words.append(f"one of launches {place.launches[0]} to {place.launches[1]}")
    words += [place.op] if place.op else []
    missing += [] if place.op else ["kernel"]
    words += (
        [f"{place.access} of" if place.access else "at", *place.tensors] if place.tensors else []
    )
    missing += [] if place.tensors else ["tensor"]
    missing.append("elements")
    if own is not None and place.pid is not None:
        same = "this process" if place.pid == own else f"process {place.pid} on the host"
        words.append(f"({same})")
    return " ".join(words), f"no {', '.join(missing)}"


def _finding(one: Finding) -> str:
    elements = (
        None if one.elements is None else frozenset(range(one.elements[0], one.elements[1] + 1))
    )
    launch = f"launch {one.launch}" if one.launch >= 0 else "a launch"
    access = (
        "read"
        if "read" in str(one.kind)
        else "write"
        if "write" in str(one.kind)
        else str(one.kind)
    )
    return f"{launch} {one.op} {access} of {one.tensor} {spans(elements)}"


def _first_writer(reference: Sequence[Finding]) -> str:
    writes = [one for one in reference if str(one.kind).endswith("write")]
    if not writes:
        return ""
    first = min(writes, key=lambda one: one.launch)
    whose = "" if first.request is None else f", for request {first.request}"
    return f"{_finding(first)}{whose}"


def _observed(one: Evidence) -> str:
    return {Seen.SEEN: "fault", Seen.NONE: "none"}.get(one.state, "unobservable")


def _none(one: Evidence) -> bool:
    return one.state is Seen.NONE
