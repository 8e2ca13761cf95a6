"""Failure facts put together: what one engine's life in one source ended in."""

from __future__ import annotations

from collections.abc import Sequence

from ..facts import Certainty, Fact, Incident, Time
from ..vocabulary import FAILURES

# Failures further apart than this, by one clock, are two incidents.
APART = 900.0


def incidents(facts: Sequence[Fact]) -> tuple[Incident, ...]:
    """Incidents in order of source and line; claims make none."""
    found: list[Incident] = []
    group: list[int] = []
    for index, fact in enumerate(facts):
        if fact.kind not in FAILURES or fact.certainty is Certainty.CLAIMED:
            continue
        if group and not _together(facts[group[-1]], fact):
            found.append(_incident(facts, group))
            group = []
        group.append(index)
    if group:
        found.append(_incident(facts, group))
    return tuple(found)


def _together(before: Fact, after: Fact) -> bool:
    if (before.source, before.session) != (after.source, after.session):
        return False
    apart = _seconds_between(before.time, after.time)
    return apart is None or apart <= APART


def _seconds_between(before: Time | None, after: Time | None) -> float | None:
    if before is None or after is None or before.clock is not after.clock:
        return None
    return abs(after.seconds - before.seconds)


def _incident(facts: Sequence[Fact], group: list[int]) -> Incident:
    first, last = facts[group[0]], facts[group[-1]]
    return Incident(first.source, first.session, first.line, last.line, tuple(group))
