"""What a search is asked, what it asks to be run, and what it answers.

    search = Search(candidates, unavailable, events, options)
    while not isinstance(step := search.next(), Result):
        …run the trials of `step`, append an Observation of each to the journal and to the search…

A search does no I/O and keeps nothing but its events: the same events give the same next step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..errors import UsageError
from .costs import Costs

MOST = 10_000  # of anything that is counted in the options


class Find(StrEnum):
    """first_bad: the candidates begin good and end bad. first_good: they begin bad, a fix comes."""

    FIRST_BAD = "first_bad"
    FIRST_GOOD = "first_good"


class Kind(StrEnum):
    """Kinds of result. narrowed: a range that holds the boundary. none: not even that."""

    FIRST_BAD = "first_bad"
    FIRST_GOOD = "first_good"
    NARROWED = "narrowed"
    NONE = "none"


class Ending(StrEnum):
    """Why a search ended.

    located: nothing is left to ask. untestable: what lies between cannot be tested. unconfirmed:
    the bad build did not show the fault again, or no trial tells any more. ends: an end is not what
    it was said to be, or cannot be tested. budget: time or trials are spent. infra: the machine
    failed again and again.
    """

    LOCATED = "located"
    UNTESTABLE = "untestable"
    UNCONFIRMED = "unconfirmed"
    ENDS = "ends"
    BUDGET = "budget"
    INFRA = "infra"


@dataclass(frozen=True, slots=True)
class Options:
    """How to search.

    exact: a trial decides (depths source and kernel): no repeats, no confirmation.
    deterministic: the fault shows in every trial of a bad build. False: the ends decide, where each
    of `repeats` trials must agree.
    flaky: prior probability that it is only sometimes there, of a fault whose ends agreed.
    faults: to be seen at the bad end of a flaky fault, which tells how often it shows.
    end_trials: after so many trials of an end without the fault it is said not to reproduce.
    ends_given: whether the good end (the bad one, for first_good) was named. If not, the search
    walks 1, 2, 4, 8… builds from the other end until it finds one.
    jobs: trials that run at the same time. budget_*: seconds of trials and setups, all jobs
    together, and number of trials; None: no limit.
    mix_hosts: trials of different GPUs or drivers are weighed together.
    """

    find: Find = Find.FIRST_BAD
    exact: bool = False
    deterministic: bool = False
    confidence: float = 0.99
    flaky: float = 0.5
    repeats: int = 3
    faults: int = 3
    end_trials: int = 40
    ends_given: bool = True
    jobs: int = 1
    budget_seconds: float | None = None
    budget_trials: int | None = None
    mix_hosts: bool = False
    costs: Costs = field(default_factory=Costs)

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1:
            raise UsageError("the confidence of a bisection is from 0.5 to less than 1")
        if not 0 < self.flaky < 1:
            raise UsageError("the prior of a flaky fault is more than 0 and less than 1")
        for name in ("repeats", "faults", "end_trials", "jobs"):
            if not 1 <= getattr(self, name) <= MOST:
                raise UsageError(f"{name} of a bisection is a number from 1 to {MOST}")
        for name in ("budget_seconds", "budget_trials"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise UsageError(f"{name} of a bisection is a number above 0")


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial to run. number: the how-manieth of this build, from 1. purpose: for a reader."""

    build: str
    number: int
    purpose: str


@dataclass(frozen=True, slots=True)
class Result:
    """Where the fault began (or ended), as far as it is known.

    build: the first bad build (the first good one, for a fix); of a narrowed range its last
    candidate. previous: the build next to the candidates on the other side. confidence: probability
    that the boundary is what it is said to be. candidates: every build that may be the boundary, in
    the order of the candidates; `tested` of them were untestable when tried (with reason),
    `presumed` lie between such, `unavailable` were known to be before the search.
    rate: how often a trial of a bad build shows the fault; None where it always does or is unknown.
    """

    kind: Kind
    ending: Ending
    build: str | None = None
    previous: str | None = None
    confidence: float = 0.0
    candidates: tuple[str, ...] = ()
    tested: Mapping[str, str] = field(default_factory=dict)
    presumed: tuple[str, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
    rate: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search has come: the boundary lies after `low` and not after `high`.

    trials_left and seconds_left are expectations; None before the ends are tested.
    """

    low: str | None
    high: str | None
    candidates: int
    confidence: float
    trials: int
    seconds: float
    trials_left: float | None
    seconds_left: float | None
