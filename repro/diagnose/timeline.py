"""Incidents put together, and in each the first failure apart from what follows from it. Pure.

Order is told within one clock only: within a source, or between sources whose lines carry the same
kind of stamp. A kernel log has a clock of its own, and so has each zone; what is on another clock
is shown beside, never before or after. Failures of several ranks in one second are a tie.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .facts import Clock, Fact, Reading
from .grouping import KERNEL, clusters, gap, groups
from .vocabulary import FAILURES, FIRST

# The traceback of a worker is printed again by the engine core, and again by the server.
PROCESSES = {"kernel": 0, "worker": 1, "scheduler": 1, "engine_core": 2, "api_server": 3}
DEVICE = frozenset({"cuda_error", "device_assert", "oom"})
# Facts that hold for later starts in the same source as well.
OUTSIDE = frozenset({"command", "environment", "library", "gpu", "image", "host"})
TRACEBACK = 300  # lines between the head of a traceback and the error it ends in
# Signs of waiting: they come first only where nothing else did.
WAITING = frozenset({"rpc_timeout", "sample_timeout", "collective_timeout", "heartbeat"})


class Course(NamedTuple):
    """One incident: what failed first, what followed, and all facts that describe it.

    first: one failure, or several that tie; empty where nothing failed visibly. elsewhere: failures
    on a clock that cannot be compared. note: what cannot be told about the order, or "".
    """

    first: tuple[Fact, ...]
    cascade: tuple[Fact, ...]
    elsewhere: tuple[Fact, ...]
    facts: tuple[Fact, ...]
    note: str = ""

    @property
    def failures(self) -> tuple[Fact, ...]:
        return (*self.first, *self.cascade, *self.elsewhere)


def courses(reading: Reading) -> tuple[Course, ...]:
    """The incidents of a reading, in the order of their first lines."""
    found: list[Course] = []
    for group in groups(reading):
        incidents = [i for i in reading.incidents if i.source in group]
        failures = clusters(reading, incidents)
        if not failures:
            quiet = tuple(f for f in reading.facts if f.source in group)
            claimed = [f for f in quiet if f.kind in FAILURES]
            if claimed:
                failures = [claimed]
            elif quiet:
                found.append(Course((), (), (), quiet))
        found += [_course(reading, group, cluster, failures) for cluster in failures]
    return tuple(found)


def _course(
    reading: Reading, group: Sequence[int], cluster: list[Fact], all_clusters: list[list[Fact]]
) -> Course:
    lead, beside = _by_clock(cluster)
    ordered = _without_echoes(_ordered(lead))
    candidates = [fact for fact in ordered if _may_be_first(fact)]
    candidates = [f for f in candidates if not _announces(f)] or candidates
    first = _first(candidates)
    lines = {(fact.source, fact.line) for fact in first}
    cascade = tuple(
        fact
        for fact in ordered
        if fact not in first
        and (fact.source, fact.line) not in lines
        and fact.kind in FAILURES
        and not _refused(fact)
    )
    return Course(
        tuple(first),
        cascade,
        tuple(beside),
        _about(reading, group, cluster, all_clusters),
        _note(first, beside),
    )


def _by_clock(cluster: Sequence[Fact]) -> tuple[list[Fact], list[Fact]]:
    """Failures of the engine's own clock, and those beside it.

    Beside are the kernel log, and sources without a single time (a sanitizer's output) where others
    have times.
    """
    kernel = [fact for fact in cluster if fact.kind in KERNEL or fact.process == "kernel"]
    others = [fact for fact in cluster if fact not in kernel]
    if not others:
        return kernel, []
    timed = {fact.source for fact in others if fact.time is not None}
    timeless = [fact for fact in others if timed and fact.source not in timed]
    return [fact for fact in others if fact not in timeless], [*timeless, *kernel]


def _ordered(facts: Iterable[Fact]) -> list[Fact]:
    """By time where all sources have one, by line within a source; worker, core, server."""
    by_source: dict[int, list[Fact]] = {}
    for fact in facts:
        by_source.setdefault(fact.source, []).append(fact)
    keyed = []
    for source, own in by_source.items():
        own.sort(key=lambda fact: fact.line)
        times = [fact.time for fact in own if fact.time]
        now = times[0].seconds if times else 0.0
        for fact in own:
            # a source may hold lines of several clocks: those of another keep their place
            if fact.time and fact.time.clock is times[0].clock:
                now = fact.time.seconds
            # what started the engine tells last how it ended
            rank = 4 if fact.kind == "exit" else PROCESSES.get(fact.process or "", 1)
            keyed.append(((int(now), rank, source, fact.line), fact))
    return [fact for _, fact in sorted(keyed, key=lambda pair: pair[0])]


def _without_echoes(facts: Sequence[Fact]) -> list[Fact]:
    """Failures without the lines that only announce or repeat one of the same process.

    A traceback and the device error it ends in are one failure; so are the header of a worker's
    traceback, and the exception by which the server learns that the engine died.
    """
    device = [fact for fact in facts if fact.kind in DEVICE]
    dead = {(fact.source, fact.line) for fact in facts if fact.kind == "engine_dead"}
    heard = {(fact.source, fact.line) for fact in facts if fact.kind == "nccl_error"}
    kept = []
    for fact in facts:
        if fact.kind == "engine_dead" and fact.get("what") == "worker_exception":
            continue
        if fact.kind == "hang" and (fact.source, fact.line) in heard and fact is not facts[0]:
            continue
        if fact.kind == "python_exception":
            near = any(
                one.source == fact.source
                and _owner(one) == _owner(fact)
                and abs(one.line - fact.line) <= TRACEBACK
                for one in device
            )
            if near or (fact.source, fact.line) in dead:
                continue
        kept.append(fact)
    return kept


def _announces(fact: Fact) -> bool:
    """Whether a failure is first only where nothing else is: a wait, the word that a start failed,
    which stands above what it failed of, or a request that the server refused."""
    waits = fact.kind == "hang" and fact.get("sign") in WAITING
    return waits or fact.kind == "start_failure" or _refused(fact)


def _refused(fact: Fact) -> bool:
    """Whether a failure is a single request's: an exception of the code that takes requests."""
    raised = fact.kind == "python_exception" and fact.process == "api_server"
    return raised and "entrypoints/" in str(fact.get("top"))


def _may_be_first(fact: Fact) -> bool:
    if fact.kind not in FIRST or fact.get("secondary"):
        return False
    return fact.get("class") != "consequence" and fact.get("what") != "watchdog"


def _first(candidates: Sequence[Fact]) -> list[Fact]:
    """The earliest failure, with those of other ranks or devices in the same second."""
    if not candidates:
        return []
    earliest = candidates[0]
    same = [earliest]
    owners = {_owner(earliest)}
    for fact in candidates[1:]:
        apart = gap(earliest, fact)
        owner = _owner(fact)
        if fact.source == earliest.source and fact.line == earliest.line:
            continue
        if owner not in owners and apart is not None and int(apart) == 0 and _alike(earliest, fact):
            owners.add(owner)
            same.append(fact)
    return same


def _owner(fact: Fact) -> object:
    if fact.kind in KERNEL:
        return fact.get("bus")
    return fact.rank or fact.pid or fact.source


def _alike(one: Fact, other: Fact) -> bool:
    """Only workers (or devices) tie: the core and the server repeat what a worker said."""
    same_level = PROCESSES.get(one.process or "", 1) == PROCESSES.get(other.process or "", 1)
    return one.kind == other.kind and same_level


def _note(first: Sequence[Fact], beside: Sequence[Fact]) -> str:
    notes = []
    if len(first) > 1:
        notes.append("same second: a tie")
    if first and first[0].time is None:
        notes.append("no times: by the order of lines")
    if beside:
        kernel = all(fact.kind in KERNEL or fact.process == "kernel" for fact in beside)
        what = (
            "the kernel log has another clock" if kernel else "what is beside has no common clock"
        )
        notes.append(f"{what}: no order is told between the two")
    return " · ".join(notes)


def _about(
    reading: Reading, group: Sequence[int], cluster: Sequence[Fact], clusters: list[list[Fact]]
) -> tuple[Fact, ...]:
    """The facts that describe an incident: of its sessions, and of sources without one.

    A source that has only incidents of other clusters is left out, and so is what another start of
    the same log says, but for what holds of all of them (the command line, the machine).
    """
    sessions: dict[int, set[int]] = {}
    for fact in cluster:
        sessions.setdefault(fact.source, set()).add(fact.session)
    taken = {fact.source for other in clusters if other is not cluster for fact in other}
    kept = []
    for fact in reading.facts:
        if fact.source not in group:
            continue
        own = sessions.get(fact.source)
        if own is None:
            if fact.source not in taken:
                kept.append(fact)
        elif fact.session in own or (fact.kind in OUTSIDE and fact.session < min(own)):
            kept.append(fact)
    inside = {id(fact) for fact in cluster}
    return tuple(f for f in kept if f.kind not in FAILURES or id(f) in inside)


def wall_times(facts: Iterable[Fact]) -> Iterator[str]:
    """Times of day as they were written; a kernel log's seconds since boot are none."""
    for fact in facts:
        if fact.time is not None and fact.time.clock is not Clock.BOOT:
            yield fact.time.text
