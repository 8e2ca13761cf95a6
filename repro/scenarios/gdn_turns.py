"""When a step of the GDN pipeline was issued and began on each stage, and by which launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ops import Event, Ops, Tensor

MOST_TURNS = 240  # steps on a stage that are told of, the first ones


@dataclass(slots=True)
class Wire:
    """Hidden states on their way. start: what the receiving stage's stream waits for.

    arrived: the tick in which they travelled, None before. started: that in which the receiving
    stage began on them.
    """

    source: Tensor
    target: Tensor
    start: Event
    arrived: int | None = None
    started: int | None = None


@dataclass(slots=True)
class Hop:
    """A step on one stage: what it receives over, what it sends, whether it has computed that."""

    wire: Wire | None
    out: Tensor
    done: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A step on a stage: the tick in which its host issued it, over what it is received, and its
    first and last launch."""

    stage: int
    step: int
    issued: int
    wire: Wire | None
    launches: tuple[int, int]

    def told(self) -> dict[str, Any]:
        """`started`: the tick in which its stream began, None if it never did."""
        return {
            "stage": self.stage,
            "step": self.step,
            "issued": self.issued,
            "started": self.wire.started if self.wire else self.issued,
            "launches": list(self.launches),
        }


@dataclass(slots=True)
class Range:
    """Notes which launches a stage issued while it is entered."""

    ops: Ops
    ranges: list[list[int]]
    stage: int
    first: int = 0

    def __enter__(self) -> None:
        self.first = self.ops.launches

    def __exit__(self, *error: object) -> None:
        if self.ops.launches > self.first:
            self.ranges.append([self.first, self.ops.launches - 1, self.stage])
