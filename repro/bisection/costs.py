"""What a trial costs: on a build that is ready, on one that was ready once, on a new one. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from .verdicts import Bad, Event, Good, Observation


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds: `trial` itself, `load` to take up a build that is installed, `install` of a new one.

    The defaults are guesses for an engine on one device; `measured` replaces them.
    """

    trial: float = 60.0
    load: float = 30.0
    install: float = 300.0

    def __post_init__(self) -> None:
        if not (self.trial > 0 and self.load >= 0 and self.install >= 0):
            raise ValueError("costs are numbers of seconds, that of a trial above 0")

    def of(self, build: str, ready: Iterable[str], known: Iterable[str]) -> float:
        """Seconds until a trial of `build` can begin. ready: what runs now; known: installed."""
        if build in ready:
            return 0.0
        return self.load if build in known else self.install


# Depths that install nothing.
READING = Costs(trial=1.0, load=0.0, install=0.0)


def measured(events: Iterable[Event], assumed: Costs) -> Costs:
    """The costs as the trials showed them: medians, and what is assumed where nothing was seen."""
    trials: list[float] = []
    loads: list[float] = []
    installs: list[float] = []
    known: set[str] = set()
    for event in events:
        if not isinstance(event, Observation):
            continue
        if isinstance(event.verdict, Good | Bad):
            trials.append(event.seconds)
        if event.setup > 0:
            (loads if event.build in known else installs).append(event.setup)
        known.add(event.build)
    # a trial that took no measurable time still has to be run
    trial = max(median(trials), 1e-3) if trials else assumed.trial
    install = median(installs) if installs else assumed.install
    load = median(loads) if loads else min(assumed.load, install)
    return Costs(trial, load, install)
