"""What the kernel log says of an incident: names of signs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .facts import Fact
from .situation import Notes
from .timeline import Course
from .values import int_of, text_of, texts


def note_xids(notes: Notes, xids: Sequence[Fact]) -> None:
    if not xids:
        return
    notes.each("xid", [(int_of(f, "code"), f) for f in xids])
    notes.each("xid_class", [(text_of(f.get("class")), f) for f in xids])
    for kind in ("hardware", "driver"):
        own = [f for f in xids if f.get("class") == kind]
        notes.put(f"{kind}_xid", [c for f in own if isinstance(c := f.get("code"), int)], own)
    faults = [f for f in xids if f.get("code") in (13, 31)]
    access = [f for f in xids if f.get("access")]
    kinds = [(str(f.get("access")).lower().removeprefix("virt_"), f) for f in access]
    notes.each("access", kinds)
    notes.put("fault_type", texts(xids, "fault_type"), xids)
    notes.each("detail", [(text_of(f.get("detail")), f) for f in xids])
    together = max((_together(f, faults) for f in faults), key=len, default=[])
    buses = {f.get("bus") for f in together}
    notes.put("gpus_at_once", len(buses) or None, together)
    every = {f.get("bus") for f in xids}
    tensor = notes.first("tp")
    several = len(every) > 1 or (isinstance(tensor, (int, float)) and tensor > 1)
    times = _moments(faults)
    if len(times) > 1 and several and len({f.get("bus") for f in faults}) == 1:
        notes.put("same_gpu_again", "yes", faults)
    addresses: dict[object, list[Fact]] = {}
    for fact in faults:
        if fact.get("address"):
            addresses.setdefault(fact.get("address"), []).append(fact)
    again = [own for own in addresses.values() if len(_moments(own)) > 1]
    if again:
        notes.put("same_address", "yes", again[0])


def _together(fact: Fact, faults: Sequence[Fact]) -> list[Fact]:
    """Page faults within two seconds of one, or all where there are no times."""
    if fact.time is None:
        return list(faults)
    return [
        f
        for f in faults
        if f.time and f.source == fact.source and abs(f.time.seconds - fact.time.seconds) <= 2
    ]


def _moments(faults: Sequence[Fact]) -> list[float]:
    """Moments, more than a minute apart, at which faults came."""
    found: list[float] = []
    for seconds in sorted(f.time.seconds for f in faults if f.time):
        if not found or seconds - found[-1] > 60:
            found.append(seconds)
    return found


def note_kernel_log(notes: Notes, course: Course, failures: Sequence[Fact]) -> None:
    notes.put("sxid", "yes" if (s := [f for f in failures if f.kind == "sxid"]) else None, s)
    logs = [f for f in failures if f.kind == "kernel_log"]
    notes.each("kernel_log", [(text_of(f.get("what")), f) for f in logs])
    # a kernel log that was given and holds no line of a fault shows that there was none
    if any(f.kind in ("xid", "kernel_log") or f.process == "kernel" for f in course.facts):
        notes.absent |= {"xid", "access"}
