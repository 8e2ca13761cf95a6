"""Which checks a launch makes, and what is said of it that is no finding."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..emulator import checks
from ..emulator.launch import LaunchReport
from ..emulator.races import GlobalRace, told
from ..findings import ranges
from ..records import Source


@dataclass(frozen=True, slots=True)
class Warned:
    """A race between blocks, which may be meant: no finding, but said. text: both sides of it."""

    launch: int
    kernel: str
    tensor: str
    elements: tuple[int, int]
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
    return [
        _warned(race, stretch, kernel, number)
        for race in report.warnings
        if not race.benign
        for stretch in ranges(race.elements)
    ]


def _warned(race: GlobalRace, stretch: tuple[int, int], kernel: str, number: int) -> Warned:
    block = f"block {race.block}, thread {race.thread}"
    text = f"race between blocks: {race.access} of element {stretch[0]} of {race.buffer}"
    if stretch[1] > stretch[0]:
        text += f" to {stretch[1]}"
    text += f" by {block}, {told(race.other, block=True)}"
    source = Source(race.file, race.line) if race.line else None
    return Warned(number, kernel, race.buffer, stretch, source, text)
