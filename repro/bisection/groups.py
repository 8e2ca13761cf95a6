"""Which trials may be weighed together: those of one kind of GPU and one driver. Pure.

A fault that shows on an H100 in three trials of ten may show on an A100 in none: trials of both
put into one posterior would say of neither what is so. So the first trial that decides names the
group, and what ran elsewhere stands as a failure of the machine: it is listed, it says nothing of
the build, and the build is tried again. A person's word has no place and counts everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..escape import printable
from .verdicts import Bad, Event, Good, Infra, Observation, Place, effective

UNTOLD = "a GPU of an unknown type"  # that NVML does not show where it is


@dataclass(frozen=True, slots=True)
class Group:
    """What trials that are weighed together have in common: the type of the GPU and its driver,
    both "" where none was used; then the architecture of the machine."""

    gpu: str = ""
    driver: str = ""
    machine: str = ""

    @property
    def known(self) -> bool:
        """Whether it can be asked for by type."""
        return bool(self.gpu) and self.gpu != UNTOLD

    def __str__(self) -> str:
        if self.gpu:
            return printable(f"{self.gpu} with driver {self.driver or 'unknown'}")
        return printable(f"no GPU, {self.machine}") if self.machine else "an unknown machine"


def group(place: Place | None) -> Group:
    """The group of a place; what ran nobody knows where is a group of its own."""
    if place is None:
        return Group()
    if place.gpu:
        return Group(place.gpu, place.driver)
    return Group(machine=place.machine)


def deciding(events: Iterable[Event]) -> Group | None:
    """The group of the first trial that was good or bad; where none was, of the first that says
    anything of its build. None before there is one."""
    seen = [
        event
        for event in effective(events)
        if isinstance(event, Observation) and not isinstance(event.verdict, Infra)
    ]
    decisive = [event for event in seen if isinstance(event.verdict, Bad | Good)]
    first = next(iter(decisive or seen), None)
    return None if first is None else group(first.place)


def counted(events: Iterable[Event], *, mixed: bool) -> list[Event]:
    """The events that count, each trial of another group as a failure of the machine.

    mixed: everything counts as it is.
    """
    kept = effective(events)
    chosen = deciding(kept)
    if mixed or chosen is None:
        return kept
    return [
        replace(event, verdict=Infra(why))
        if isinstance(event, Observation) and (why := left_out(event, chosen))
        else event
        for event in kept
    ]


def left_out(event: Observation, chosen: Group) -> str:
    """Why a trial does not count beside those of a group; "" for one that does, and for one that
    says nothing of its build wherever it ran."""
    own = group(event.place)
    if own == chosen or isinstance(event.verdict, Infra):
        return ""
    return f"not counted: it ran on {own}, what decided on {chosen}"
