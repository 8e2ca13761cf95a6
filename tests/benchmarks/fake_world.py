"""A history of builds with a known fault, for searches to find."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from specrepro.repro.bisection.question import Result, Trial
from specrepro.repro.bisection.search import Search
from specrepro.repro.bisection.verdicts import (
    Bad,
    Exposure,
    Good,
    Infra,
    Observation,
    Other,
    Untestable,
    Verdict,
)

LOAD = Exposure(requests=100, tokens=20_000, seconds=60.0)
FAULT = Exposure(requests=50, tokens=11_000, seconds=30.0)


@dataclass(frozen=True)
class World:
    """Builds "b0", "b1"… in order. The first is good; the fault comes at `first_bad` and goes, or
    comes back, at each of `flips`. A trial of a bad build shows it with probability p.

    untestable: position → fingerprint. crashes: positions that always end with another fault.
    infra: probability that the machine fails a trial. The outcome of a trial depends on its build
    and number alone, so that a search that is resumed meets the same world.
    """

    length: int
    first_bad: int
    p: float = 1.0
    untestable: Mapping[int, str] = field(default_factory=dict)
    flips: Sequence[int] = ()
    crashes: frozenset[int] = frozenset()
    infra: float = 0.0
    seed: int = 0

    @property
    def builds(self) -> list[str]:
        return [f"b{i}" for i in range(self.length)]

    def bad(self, position: int) -> bool:
        return sum(position >= at for at in (self.first_bad, *self.flips)) % 2 == 1

    def verdict(self, trial: Trial) -> Verdict:
        position = int(trial.build[1:])
        chance = random.Random(f"{self.seed}/{trial.build}/{trial.number}")  # noqa: S311
        if chance.random() < self.infra:
            return Infra("no space left on device")
        if position in self.untestable:
            return Untestable("cannot be installed", self.untestable[position])
        if position in self.crashes:
            return Other("AssertionError in sampler")
        if self.bad(position) and chance.random() < self.p:
            return Bad("Xid 31 in kv_write", FAULT)
        return Good(LOAD)

    def observe(self, trial: Trial) -> Observation:
        return Observation(trial.build, trial.number, self.verdict(trial), 60.0)


def play(
    search: Search, world: World, limit: int, told: Callable[[Observation], None] | None = None
) -> tuple[Result, list[Observation]]:
    """Run a search to its result. AssertionError where that takes more than `limit` trials."""
    seen: list[Observation] = []
    while not isinstance(step := search.next(), Result):
        assert 0 < len(step) <= search.options.jobs
        for trial in step:
            seen.append(world.observe(trial))
            search.add(seen[-1])
            if told is not None:
                told(seen[-1])
        assert len(seen) <= limit, f"no end after {limit} trials"
    return step, seen


def switches(seen: Sequence[Observation]) -> int:
    """How often a search, one trial at a time, turned to another build; the first one counts."""
    return sum(
        i == 0 or seen[i - 1].build != observation.build for i, observation in enumerate(seen)
    )
