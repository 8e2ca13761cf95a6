"""What the acceptance of draft tokens looked like, from the metrics of an incident. Pure.

Rates are 0 to 1, by position; mean acceptance lengths count the bonus token, so that 1.0 means that
nothing was accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .facts import Fact
from .situation import Notes

ENOUGH = 30  # drafted tokens that make one line tell something
GOOD = 0.5  # acceptance of the first position in a healthy run
LATE = 0.25  # a position with less than this of the one before it has broken off
LOW = 0.3
FALL = 0.8  # of the mean length at the start: less is a fall


class Line(NamedTuple):
    """One line of metrics."""

    fact: Fact
    mean: float | None
    rates: tuple[float, ...]
    drafted: float | None

    @property
    def zero(self) -> bool:
        if self.rates:
            return max(self.rates) < 0.005
        return self.mean is not None and self.mean < 1.01


def note_acceptance(notes: Notes, facts: Sequence[Fact], crashed: bool) -> None:
    """Put names of acceptance into `notes`. crashed: whether a failure ended the run."""
    lines = [line for fact in facts if fact.kind == "spec_metrics" if (line := _line(fact))]
    if not lines:
        return
    kinds = _kinds(lines)
    used = [line.fact for line in (lines[0], *lines[-2:])]
    notes.put("acceptance", kinds, used)
    if lines[-1].rates:
        shown = max(lines[-3:], key=lambda line: line.drafted or 0)
        text = " ".join(f"{rate:.3f}" for rate in shown.rates)
        notes.put("per_position", text, [shown.fact])
    if lines[0].mean is not None and lines[-1].mean is not None:
        course = f"{lines[0].mean:.2f} to {lines[-1].mean:.2f}"
        notes.put("acceptance_course", course, used)
    bad = {"zero", "late", "falling", "low", "always_zero", "recovers"} & set(kinds)
    if bad and not crashed:
        notes.add("symptom", "acceptance_loss", used)


def _line(fact: Fact) -> Line | None:
    mean, rates = fact.get("mean_acceptance_length"), fact.get("per_position")
    drafted = fact.get("drafted")
    number = float(drafted) if isinstance(drafted, (int, float)) else None
    if number is not None and number < ENOUGH:
        return None
    length = float(mean) if isinstance(mean, (int, float)) and mean == mean else None
    values = tuple(float(r) for r in rates) if isinstance(rates, tuple) else ()
    if length is None and not values:
        return None
    return Line(fact, length, values, number)


def _kinds(lines: Sequence[Line]) -> list[str]:
    zero = [line.zero for line in lines]
    if all(zero):
        return ["zero", "always_zero"] if len(lines) > 1 else ["zero"]
    kinds = []
    if _runs(zero) or zero[-1]:
        kinds.append("zero")
        if not zero[-1]:
            kinds.append("recovers")
    good = [line for line in lines if not line.zero and line.rates]
    if good and _late(good):
        kinds.append("late")
    elif good and sum(line.rates[0] for line in good) / len(good) < LOW:
        kinds.append("low")
    if _falls([line.mean for line, dead in zip(lines, zero, strict=True) if not dead]):
        kinds.append("falling")
    return kinds or ["healthy"]


def _runs(zero: Sequence[bool]) -> bool:
    """Whether nothing was accepted for two lines on end."""
    return any(a and b for a, b in pairwise(zero))


def _late(lines: Sequence[Line]) -> bool:
    """Whether acceptance breaks off behind a healthy position, in most lines."""
    broken = 0
    for line in lines:
        pairs = zip(line.rates, line.rates[1:], strict=False)
        broken += any(a >= GOOD and b <= LATE * a for a, b in pairs)
    return broken * 2 > len(lines)


def _falls(means: Sequence[float | None]) -> bool:
    """Whether the accepted part of the mean length falls, from the first third to the last."""
    known = [mean - 1 for mean in means if mean is not None]
    if len(known) < 3:
        return False
    third = max(1, len(known) // 3)
    start, end = sum(known[:third]) / third, sum(known[-third:]) / third
    return start > 0.1 and end < FALL * start
