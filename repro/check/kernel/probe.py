"""What a probe of kernels is, and the bench on which it launches one. Standard library only.

A probe is written against the bench and does not know what executes the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .subject import Subject

EVERYBODY = -1  # owner of a unit that no request is refused


@dataclass(frozen=True, slots=True)
class Owned:
    """Who may touch which unit of a tensor. unit: elements of one; of: the request of each."""

    unit: int
    of: Sequence[int]


@dataclass(slots=True)
class Tensor:
    """A tensor of the bench: flat, of one type, changed by launches. data, owners: the bench's own.
    targets: of a tensor of addresses, what they are of."""

    name: str
    data: Any
    owners: Any = None
    targets: tuple[Tensor, ...] = ()

    @property
    def values(self) -> list[Any]:
        """Its elements now, as Python numbers."""
        found: list[Any] = self.data.tolist()
        return found


class Bench(Protocol):
    """Where a probe launches its kernel."""

    def tensor(
        self, name: str, dtype: str, values: Sequence[float], owned: Owned | None = None
    ) -> Tensor:
        """A tensor with these elements."""

    def addresses(self, name: str, of: Sequence[Tensor]) -> Tensor:
        """A tensor of 64-bit integers that are the addresses of other tensors."""

    def launch(
        self,
        grid: tuple[int, int, int],
        given: Mapping[str, Tensor],
        *,
        request: Sequence[int] | None = None,
        step: int | None = None,
        traced: Tensor | None = None,
    ) -> list[Mapping[str, Any]]:
        """Run the kernel once; the findings, as JSON. given: role → tensor; a pointer that is not
        given gets zeros. request: of each block column; without it owners are not looked at.
        step: what the findings are marked with. traced: the tensor of which it is to be known
        which line wrote what; see `wrong_value`."""

    def wrong_value(
        self, tensor: Tensor, element: int, expected: float, lands_in: str | None = None
    ) -> Mapping[str, Any]:
        """The finding for an element that came out of the last launch other than it must, with the
        line that wrote it where the launch traced the tensor. lands_in: what the value means."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a probe saw. value: one of its values. detail: what was seen, with the numbers.
    findings: wrong accesses and wrong values, in the form of the record of a run."""

    value: str
    detail: str
    findings: Sequence[Mapping[str, Any]] = field(default=())


class UnclearError(Exception):
    """The kernel did something that the probe cannot put into one of its values: unknown."""


@dataclass(frozen=True, slots=True)
class KernelProbe:
    """One question to a kernel of the build. values: every value → what it means. absent: what it
    means that a build has no such kernel, in one line."""

    id: str
    question: str
    subject: Subject
    values: Mapping[str, str]
    run: Callable[[Bench], Outcome]
    absent: str
