"""Which checks a launch makes, and what is said of it that is no finding."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..emulator import checks
from ..emulator.launch import LaunchReport
from ..emulator.races import GlobalRace, told
from ..records import Source

MOST_RANGES = 4  # of elements of a wrong access that are told one by one


@dataclass(frozen=True, slots=True)
class Warned:
    """A race between blocks, which may be meant: no finding, but said. text: both sides of it."""

    launch: int
    kernel: str
    tensor: str
    elements: tuple[int, int]  # the first and the last
    source: Source | None
    text: str


def chosen(skipped: Collection[str]) -> frozenset[str]:
    """All checks but those that are skipped; UsageError for a name that is none."""
    return checks.ALL - checks.chosen(frozenset(skipped))


def named(made: frozenset[str], *, owners: bool) -> tuple[list[str], list[str]]:
    """The names of the checks that were made and that were not. owners: some are declared."""
    possible = checks.ALL if owners else checks.ALL - {checks.OWNERSHIP}
    return sorted((made & possible) | {checks.BOUNDS}), sorted(possible - made)


def warnings(report: LaunchReport, kernel: str, number: int) -> list[Warned]:
    """The races between blocks of launch `number` that may change what comes out."""
    return [_warned(race, kernel, number) for race in report.warnings if not race.benign]


def _warned(race: GlobalRace, kernel: str, number: int) -> Warned:
    stretch = int(race.elements[0]), int(race.elements[-1])
    block = f"block {race.block}, thread {race.thread}"
    text = f"race between blocks: {race.access} of element {stretch[0]} of {race.buffer}"
    if stretch[1] > stretch[0]:
        text += f" to {stretch[1]}"
    if race.elements.size < stretch[1] - stretch[0] + 1:
        text += f", {race.elements.size} of them,"
    text += f" by {block}, {told(race.other, block=True)}"
    source = Source(race.file, race.line) if race.line else None
    return Warned(number, kernel, race.buffer, stretch, source, text)
