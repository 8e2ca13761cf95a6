"""A change that is made on purpose to some of the builds that are looked at. Pure.

A bisection of releases that are all alike has nothing to find. With a change of the driver's in
some of them it has, and whoever wants to know whether the search, the environments and the
experiment work together on a machine can see it. What is found then is said of the change, and
never of a release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ...escape import quoted
from .declare import CHANGES

if TYPE_CHECKING:
    from packaging.version import Version

HINT = "as in --inject target_length@0.29.0.. or target_length@..0.28.0"


@dataclass(frozen=True, slots=True)
class Injection:
    """change: of CHANGES. low, high: the versions it is made to, both included; "" for no end."""

    change: str
    low: str = ""
    high: str = ""

    def holds(self, version: str) -> bool:
        """Whether the change is made to a build of this version; a local part does not count."""
        from packaging.version import Version

        one = Version(Version(version).public)
        return not (
            (self.low and one < Version(self.low)) or (self.high and one > Version(self.high))
        )

    def record(self) -> Mapping[str, Any]:
        """The change as it is kept: its name, what it does, which versions it is made to."""
        return {
            "change": self.change,
            "says": CHANGES[self.change],
            "from": self.low or None,
            "to": self.high or None,
        }


def injection(text: str) -> Injection:
    """Read CHANGE@LOW..HIGH, of which one end may be left out. UsageError for anything else."""
    change, at, range_ = text.partition("@")
    low, dots, high = (part.strip() for part in range_.partition(".."))
    if change not in CHANGES:
        raise UsageError(
            f"--inject: unknown change {quoted(change)}; there is {', '.join(CHANGES)}", hint=HINT
        )
    if not at or not dots or not (low or high):
        raise UsageError(
            f"--inject {quoted(text)} does not say which versions are changed", hint=HINT
        )
    oldest, newest = (_version(end) if end else None for end in (low, high))
    if oldest and newest and oldest > newest:
        raise UsageError(f"--inject {quoted(text)}: no version lies in that range", hint=HINT)
    return Injection(change, low, high)


def _version(text: str) -> Version:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion as error:
        raise UsageError(f"--inject: {quoted(text)} is no version", hint=HINT) from error
