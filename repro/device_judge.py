"""What a trial on a device says for or against what was expected. Pure.

A device differs from the lanes that execute kernels in software in three ways. It masks nothing, so
the first fault ends the trial. It sees an access only where the memory is unmapped, or the tool
under it looks: its silence is no evidence, and never a reason against a fault. And it may see that
something faulted without being able to say what.

Where the GPU was not well behind the trial, a fault that no instrument located may be the loss of
the GPU itself: then it neither shows what was expected nor contradicts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .agreement import beyond, places
from .join import contradictions, of_device
from .lanes.catalog import CATALOG, OUTCOMES
from .plan import Wanted
from .records import AFTERWARDS, Finding, Seen, Service, Status, TrialResult

TIMING = "clean with launches that block says that timing matters, not that the fault is gone"


@dataclass(frozen=True, slots=True)
class DeviceSays:
    """wrong: contradictions. unobserved: what its silence leaves open. shown: a fault was seen that
    the case expects. agrees: it named accesses, and the reference has every one of them. unknown:
    what cannot be told from the loss of the GPU."""

    wrong: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unobserved: tuple[str, ...] = ()
    shown: bool = False
    agrees: bool = False


def outcomes_of(wanted: Wanted) -> Wanted | None:
    """What is wanted of what came out, which a trial that was not ended by a fault must show."""
    predicted = tuple(one for one in wanted.predicted if one.kind in OUTCOMES)
    if not predicted:
        return None
    literal = tuple(one for one in wanted.literal if one["kind"] in OUTCOMES)
    return Wanted(predicted, literal, literal_clean=False, fix=False)


def weigh_device(
    wanted: Wanted,
    result: TrialResult,
    lane: str,
    reference: Sequence[Finding],
    missed: Sequence[str] = (),
) -> DeviceSays:
    """Weigh a decided trial of a device lane. reference: what that lane found in the same trial.

    missed: what of `outcomes_of` did not come out as wanted.
    """
    if wanted.open:
        return DeviceSays()
    faulted = result.stopped or any(f.kind not in OUTCOMES for f in result.findings)
    said = result.reason or next(
        (e.detail for e in result.evidence if e.state is Seen.SEEN), "a fault"
    )
    lost = unwell(result)
    unclear = f"{said}, and the GPU was not well afterwards, which may be all of it: {lost}"
    if wanted.status is Status.CLEAN:
        if result.status is Status.FAULT and lost and not result.findings:
            return DeviceSays(unknown=(unclear,))
        if result.status is Status.FAULT:
            return DeviceSays(wrong=(f"expected clean, the device says: {said}",))
        return DeviceSays(wrong=_service(result.service) if wanted.fix else ())
    expected = {p.kind for p in wanted.predicted} | {str(one["kind"]) for one in wanted.literal}
    visible = expected & CATALOG[lane].sees
    if faulted:
        located = any(row.agrees for row in of_device(lane, result, reference))
        if lost and not result.findings and not located:
            return DeviceSays(unknown=(unclear,))
        if not visible:
            return DeviceSays(wrong=(f"a fault that nothing predicts: {said}",))
        kinds = CATALOG[lane].locates - OUTCOMES
        theirs = places(result.findings, kinds)
        if reference and (stray := beyond(places(reference, kinds), theirs)):
            return DeviceSays(wrong=(f"the reference does not have {stray}",))
        if reference and (against := contradictions(lane, result, reference)):
            return DeviceSays(wrong=tuple(against))
        named = bool(reference) and any(key[3] for key in theirs)
        return DeviceSays(shown=True, agrees=named)
    if missed:
        return DeviceSays(wrong=tuple(missed))
    found = {f.kind for f in result.findings} & expected
    silent = sorted(str(kind) for kind in expected - found)
    unobserved = []
    if silent:
        unobserved.append(f"no sign of {', '.join(silent)}, which is no evidence against it")
        if lane == "blocking" and visible:
            unobserved.append(TIMING)
    return DeviceSays(unobserved=tuple(unobserved), shown=bool(found))


def unwell(result: TrialResult) -> str:
    """What was not well with the GPU behind a trial; "" if nothing was, or nobody looked."""
    seen = (e.detail for e in result.evidence if e.source == AFTERWARDS and e.state is Seen.SEEN)
    return next(seen, "")


def _service(service: Service | None) -> tuple[str, ...]:
    if service is None:
        return ("the fix is clean, but whether it serves was not seen",)
    return () if service.ok else ("the fix does not serve",)
