"""Hypotheses of a case against what was measured of a build. Pure.

Three things are kept apart: what a report says came of its experiments, what a hypothesis does
under an experiment in the model, and what a build did in it. The first two are weighed by
`hypotheses`. Here the last two are: a build that stays right where a hypothesis goes wrong has it
not, in those settings. One that goes wrong there as well is *compatible* with it, and may have
another fault. Where the model stays right the hypothesis does not act, and no build tells anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from .hypotheses import RIGHT
from .records import Scalar


class Standing(StrEnum):
    """What the experiments on a build say of a hypothesis."""

    COMPATIBLE = "compatible"
    NOT_THERE = "not there"
    NOT_TOLD = "not told"


@dataclass(frozen=True, slots=True)
class Measured:
    """An experiment on a build. sets: the point of the scenario that stands for it. outcome: what
    came of it, as of a trial (`wrong_output`, `right`); None where it came to none. says: in words.
    """

    id: str
    title: str
    sets: Mapping[str, Scalar]
    outcome: str | None
    says: str


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """A hypothesis under an experiment. modelled, measured: outcomes, None where there was none."""

    experiment: str
    modelled: str | None
    measured: str | None

    @property
    def tells(self) -> Standing:
        """A model stops at an illegal access where an engine may go on and say what is wrong, so
        the two are not told apart."""
        if self.modelled in (None, RIGHT) or self.measured is None:
            return Standing.NOT_TOLD
        return Standing.NOT_THERE if self.measured == RIGHT else Standing.COMPATIBLE


def measured_cells(
    experiments: Sequence[Measured], modelled: Mapping[str, str | None]
) -> tuple[MeasuredCell, ...]:
    """The cells of one hypothesis. modelled: experiment → its outcome in the model."""
    return tuple(MeasuredCell(e.id, modelled.get(e.id), e.outcome) for e in experiments)


def standing(cells: Sequence[MeasuredCell]) -> Standing:
    """One right answer where the hypothesis goes wrong outweighs wrong ones elsewhere: those have
    another cause then."""
    told = {cell.tells for cell in cells}
    for found in (Standing.NOT_THERE, Standing.COMPATIBLE):
        if found in told:
            return found
    return Standing.NOT_TOLD
