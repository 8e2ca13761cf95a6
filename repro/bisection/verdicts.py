"""What became of one trial of a build, and the other events of a search.

Only the case's own signature is `Bad`. Another crash is `Other`, which says nothing of the fault
that is looked for. `Infra` is the machine's failure and no property of a build.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from .variation import Variation


@dataclass(frozen=True, slots=True)
class Exposure:
    """How much a trial went through: finished requests, generated tokens, seconds under load.

    None where it was not observed. A fault that comes after 11,000 tokens cannot be missing in a
    trial of 2,000.
    """

    requests: int | None = None
    tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Bad:
    """The fault that is looked for. exposure: what the trial had gone through until then."""

    signature: str
    exposure: Exposure = Exposure()


@dataclass(frozen=True, slots=True)
class Good:
    """The trial ended as it should. What it proves depends on its exposure."""

    exposure: Exposure = Exposure()


@dataclass(frozen=True, slots=True)
class Other:
    """Another fault than the one that is looked for."""

    signature: str


@dataclass(frozen=True, slots=True)
class Untestable:
    """The build cannot show the fault or its absence: no wheel for this Python, an import error…

    fingerprint: equal for builds that fail in the same way, so without version numbers and paths.
    """

    reason: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Infra:
    """The trial failed for a cause outside the build: the network, the disk, the device."""

    reason: str


Verdict = Bad | Good | Other | Untestable | Infra


@dataclass(frozen=True, slots=True)
class Place:
    """Where a trial ran. node: `here`, or the beginning of a node's id; no name of a machine.
    machine: its architecture, as in x86_64. gpu and driver: of the GPU that the trial was given, ""
    where it needed none."""

    node: str
    machine: str
    gpu: str = ""
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """A trial that ended. number: counts the trials of the build from 1.

    setup: seconds until the build could be started (fetched, installed), 0 where it was at hand;
    seconds: of the trial itself. log: where it wrote, relative to the session, "" for nowhere.
    place: None where it is not known where it ran. varied: what of the build was set otherwise,
    where that was tried; `build` is the name of that variation then.
    """

    build: str
    number: int
    verdict: Verdict
    seconds: float
    log: str = ""
    setup: float = 0.0
    place: Place | None = None
    varied: Variation | None = None


class Marked(StrEnum):
    """What a person may say of a build."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Mark:
    """A person's word about a build. The latest one holds against every trial of the build."""

    build: str
    verdict: Marked


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes back the latest observation or mark that is not taken back already."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A process took the session up. Failures of the machine are counted anew from here."""


Event = Observation | Mark | Undo | Opened


def effective(events: Iterable[Event]) -> list[Event]:
    """The events that count: each Undo removes the latest observation or mark before it."""
    kept: list[Event] = []
    for event in events:
        if not isinstance(event, Undo):
            kept.append(event)
            continue
        for at in range(len(kept) - 1, -1, -1):
            if isinstance(kept[at], Observation | Mark):
                del kept[at]
                break
    return kept
