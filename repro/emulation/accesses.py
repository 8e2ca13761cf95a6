"""Which checks a launch makes, and what is said of it that is no finding."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..emulator import checks
from ..emulator.launch import LaunchReport
from ..emulator.races import GlobalRace, told
from ..records import Source
from .triton_device import FUSION

MOST_RANGES = 4  # of elements of a wrong access that are told one by one


@dataclass(frozen=True, slots=True)
class Warned:
    """What is no finding, but said: a race between blocks, which may be meant, or copies of one
    number that differ. text: both sides of it. elements: the first and the last.
    """

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
    """Of launch `number` the races between blocks that may change what comes out, and copies of one
    number that differ.
    """
    races = [
        _warned(race, f"race between blocks: {_race(race)}", kernel, number)
        for race in report.warnings
        if not race.benign
    ]
    return races + [_warned(one, _uneven(one), kernel, number) for one in report.uneven]


def _race(race: GlobalRace) -> str:
    block = f"block {race.block}, thread {race.thread}"
    text = f"{race.access} of element {race.elements[0]} of {race.buffer}"
    if race.elements.size > 1:
        text += f" to {race.elements[-1]}"
    if race.elements.size < race.elements[-1] - race.elements[0] + 1:
        text += f", {race.elements.size} of them,"
    return f"{text} by {block}, {told(race.other, block=True)}"


def _uneven(race: GlobalRace) -> str:
    return (
        f"copies of one number differ: threads {race.thread} and {race.other.thread} of block "
        f"{race.block} store them to one place of {race.buffer}. Triton may have joined a product "
        f"and a sum in one and not in the other; {FUSION}=0 keeps them apart"
    )


def _warned(race: GlobalRace, text: str, kernel: str, number: int) -> Warned:
    stretch = int(race.elements[0]), int(race.elements[-1])
    source = Source(race.file, race.line) if race.line else None
    return Warned(number, kernel, race.buffer, stretch, source, text)
