"""A build that is varied to see what carries its fault: what of it is set otherwise. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

MOST_SAID = 3  # packages of a set that are named in words

Change = tuple[str, str]  # what is set otherwise, and to what


class Varied(StrEnum):
    """What of a build is varied."""

    SWITCH = "switch"
    PACKAGES = "packages"


class Fault(StrEnum):
    """What a variation shows."""

    SHOWN = "shown"
    NOT_SHOWN = "not shown"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Variation:
    """A build with something of it set otherwise. shows: whether it has the fault as it is."""

    build: str
    shows: bool
    varied: Varied
    changes: tuple[Change, ...]

    @property
    def name(self) -> str:
        """What its trials are called; fit for a file's name."""
        if self.varied is Varied.SWITCH and len(self.changes) == 1:
            return f"{self.build}.{'-'.join(self.changes[0])}"
        text = " ".join(f"{name}=={value}" for name, value in self.changes)
        return f"{self.build}.{self.varied}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def turned(self) -> Fault:
        """The outcome in which it is no more as the build is."""
        return Fault.NOT_SHOWN if self.shows else Fault.SHOWN

    def words(self, other: str) -> str:
        """It in words. other: the build on the other side of the boundary."""
        if self.varied is Varied.SWITCH:
            return f"{self.build} with {', '.join(' '.join(change) for change in self.changes)}"
        some = ", ".join(" ".join(change) for change in self.changes[:MOST_SAID])
        left = len(self.changes) - MOST_SAID
        more = f" and {left} more" if left > 0 else ""
        return f"{self.build} with packages of {other}: {some}{more}"
