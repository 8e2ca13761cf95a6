"""Failures put together: which sources and lines speak of one incident. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .facts import Certainty, Clock, Fact, Incident, Reading

KERNEL = frozenset({"xid", "sxid", "kernel_log"})
# Failures of one engine on several ranks or nodes: at most this far apart.
TOGETHER = 600.0  # seconds
# A kernel log is read around a crash as far as this, where both have a wall clock.
NEAR = 900.0


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
    """Failures that belong together; those of a kernel log go to the crash they are near."""
    engine: list[list[Fact]] = []
    kernel: list[list[Fact]] = []
    for incident in incidents:
        facts = [reading.facts[index] for index in incident.facts]
        observed = [fact for fact in facts if fact.certainty is Certainty.OBSERVED] or facts
        only_kernel = all(fact.kind in KERNEL for fact in observed)
        _join(kernel if only_kernel else engine, observed, apart=only_kernel)
    for facts in kernel:
        near = [cluster for cluster in engine if _near(cluster, facts)]
        if len(near) == 1 or (near and len(engine) == len(near)):
            near[0].extend(_around(near[0], facts))
        else:
            engine.append(facts)
    return engine


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
    gaps = [gap(a, b) for a in one[:20] for b in other[:20]]
    known = [apart for apart in gaps if apart is not None]
    return not known or min(known) <= limit


def _around(one: Sequence[Fact], other: Sequence[Fact]) -> list[Fact]:
    """Those of `other` that are not known to be far from `one` in time."""
    kept = []
    for fact in other:
        gaps = [apart for a in one[:20] if (apart := gap(a, fact)) is not None]
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
