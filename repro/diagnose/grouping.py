"""Failures put together: which sources and lines speak of one incident. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .facts import Certainty, Clock, Fact, Incident, Reading

KERNEL = frozenset({"xid", "sxid", "kernel_log"})
# Failures of one engine on several ranks or nodes: at most this far apart.
TOGETHER = 600.0  # seconds
# A kernel log is read around a crash as far as this, where both have a wall clock.
NEAR = 900.0
# A container's log is often in UTC, the kernel's in local time: half hours apart, 14 at most.
ZONE = 1800.0
FARTHEST_ZONE = 14 * 3600.0
ZONE_SLACK = 60.0


def groups(reading: Reading) -> list[list[int]]:
    """Sources that may speak of one incident: all files given, or what one person wrote on a page.

    Where a page names no authors, it is taken as one person's.
    """
    found: dict[tuple[str, str | None], list[int]] = {}
    for index, source in enumerate(reading.sources):
        page = "" if source.part == "file" else source.name.partition("#")[0]
        found.setdefault((page, source.author), []).append(index)
    return list(found.values())


def clusters(reading: Reading, incidents: Sequence[Incident]) -> list[list[Fact]]:
    """Failures that belong together; those of a kernel log go to the crash they are near.

    Where it cannot be told which of several crashes they belong to, they stay by themselves.
    """
    engine: list[list[Fact]] = []
    kernel: list[list[Fact]] = []
    for incident in incidents:
        facts = [reading.facts[index] for index in incident.facts]
        observed = [fact for fact in facts if fact.certainty is Certainty.OBSERVED] or facts
        only_kernel = all(fact.kind in KERNEL for fact in observed)
        _join(kernel if only_kernel else engine, observed, apart=only_kernel)
    alone: list[list[Fact]] = []
    for facts in kernel:
        near = [cluster for cluster in engine if _near(cluster, facts)]
        told = [cluster for cluster in near if _least(cluster, facts) is not None]
        if told:
            nearest = min(told, key=lambda cluster: _least(cluster, facts) or 0.0)
            nearest.extend(_around(nearest, facts))
        elif len(near) == 1:
            near[0].extend(facts)
        else:
            alone.append(facts)
    return engine + alone


def _join(groups_: list[list[Fact]], facts: list[Fact], *, apart: bool) -> None:
    """Add failures to a cluster of another source that is near in time, or as one of their own."""
    for cluster in groups_ if not apart else ():
        if all(fact.source != facts[0].source for fact in cluster) and _near(
            cluster, facts, TOGETHER
        ):
            cluster.extend(facts)
            return
    groups_.append(list(facts))


def _near(one: Sequence[Fact], other: Sequence[Fact], limit: float = NEAR) -> bool:
    """Whether failures may be of one incident; True where their clocks cannot be compared."""
    least = _least(one, other)
    return least is None or least <= limit


def _least(one: Sequence[Fact], other: Sequence[Fact]) -> float | None:
    """The least time between two groups of failures; None where it cannot be told."""
    gaps = [_zoned(a, b) for a in one[:20] for b in other[:20]]
    return min((apart for apart in gaps if apart is not None), default=None)


def _zoned(one: Fact, other: Fact) -> float | None:
    """The time between two failures, where one log may be in UTC and the other in local time."""
    apart = gap(one, other)
    if apart is None or one.source == other.source or apart > FARTHEST_ZONE + ZONE_SLACK:
        return apart
    if one.time is None or other.time is None or one.time.zone or other.time.zone:
        return apart
    rest = apart % ZONE
    return min(apart, rest, ZONE - rest) if min(rest, ZONE - rest) <= ZONE_SLACK else apart


def _around(one: Sequence[Fact], other: Sequence[Fact]) -> list[Fact]:
    """Those of `other` that are not known to be far from `one` in time."""
    kept = []
    for fact in other:
        gaps = [apart for a in one[:20] if (apart := _zoned(a, fact)) is not None]
        if not gaps or min(gaps) <= NEAR:
            kept.append(fact)
    return kept or list(other)


def gap(one: Fact, other: Fact) -> float | None:
    """Seconds between two facts; None where no common clock is known."""
    if one.time is None or other.time is None or one.time.clock is not other.time.clock:
        return None
    if one.time.clock is Clock.BOOT and one.source != other.source:
        return None
    if one.time.year and other.time.year and one.time.year != other.time.year:
        return float("inf")
    if one.time.zone != other.time.zone and one.source != other.source:
        return None
    return abs(one.time.seconds - other.time.seconds)
