"""Which builds to have ready while a trial runs. Pure.

Those that would be tried next, whether the trial shows the fault or not; and the two ends of what
is left, which are tried again in the end and must not be removed to make room.
"""

from __future__ import annotations

from collections.abc import Sequence

from .question import Result, Trial
from .search import Search
from .verdicts import Bad, Good, Observation, effective


def ready(search: Search, step: Sequence[Trial]) -> list[str]:
    """The builds to hold while the trials of a step run: the ends, then those that come next; each
    once. One that is tried for the first time is made where it is tried."""
    tried = {
        event.build
        for event in effective(search.events)
        if isinstance(event, Observation) and isinstance(event.verdict, Good | Bad)
    }
    now = search.progress()
    ends = [build for build in (now.low, now.high) if build in tried]
    at_work = {trial.build for trial in step} - tried
    return [b for b in dict.fromkeys([*ends, *following(search, step)]) if b not in at_work]


def following(search: Search, step: Sequence[Trial]) -> list[str]:
    """What would be tried after a step, in which every trial shows the fault or none does."""
    found: list[str] = []
    for verdict in (Good(), Bad("as supposed")):
        seen = [Observation(trial.build, trial.number, verdict, 0.0) for trial in step]
        supposed = Search(
            search.candidates, search.unavailable, [*search.events, *seen], search.options
        )
        after = supposed.next()
        if not isinstance(after, Result):
            found += [trial.build for trial in after]
    return found
