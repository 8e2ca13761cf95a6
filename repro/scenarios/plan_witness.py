"""Which plan each attention launch found in the device's buffers, seen as the device gets to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ..ops import Array, Device, Launch, Owners, Tensor
from .plan_arrival import BUFFERS, ENGINE_BUFFERS, LIBRARY_BUFFER
from .plan_race import contents
from .split_plan import SplitPlan


@dataclass(frozen=True, slots=True)
class Sighting:
    """One attention launch of the draft loop, passes numbered from 0.

    engine, library: the plans found in its buffers, its own first where several are equal; several
    where buffers of one owner held different plans.
    """

    number: int
    plans: tuple[SplitPlan, ...]
    engine: tuple[int, ...]
    library: tuple[int, ...]

    @property
    def plan(self) -> SplitPlan:
        """The plan it was launched with."""
        return self.plans[self.number]

    @property
    def own(self) -> bool:
        """Whether every buffer held what the launch was made for."""
        return {*self.engine, *self.library} == {self.number}

    @property
    def found_chunks(self) -> int:
        """Chunks of the plan found in the work space."""
        return max(self.plans[number].chunks for number in self.library)


class PlanWitness:
    """A device that passes everything on and looks at the plan buffers at each attention launch."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._held: list[dict[str, Array]] = []

    def tensor(
        self,
        name: str,
        values: Array,
        *,
        owners: Owners | None = None,
        behind: Array | None = None,
    ) -> Tensor:
        return self.device.tensor(name, values, owners=owners, behind=behind)

    def launch(self, launch: Launch) -> None:
        if launch.op == "planned_attention":
            tensors = {name: launch.args[name] for name in BUFFERS}
            self._held.append(
                {n: self.device.read(t) for n, t in tensors.items() if isinstance(t, Tensor)}
            )
        self.device.launch(launch)

    def read(self, tensor: Tensor) -> Array:
        return self.device.read(tensor)

    def write(self, tensor: Tensor, values: ArrayLike) -> None:
        self.device.write(tensor, values)

    def allocate(self, name: str, size: int) -> bool:
        return self.device.allocate(name, size)

    def sightings(self, plans: Sequence[SplitPlan]) -> list[Sighting]:
        """What the launches of one draft loop found, given its plans in order."""
        return [
            Sighting(
                number,
                tuple(plans),
                engine=_found(number, plans, held, ENGINE_BUFFERS),
                library=_found(number, plans, held, (LIBRARY_BUFFER,)),
            )
            for number, held in enumerate(self._held)
        ]


def _found(
    own: int, plans: Sequence[SplitPlan], held: dict[str, Array], names: Sequence[str]
) -> tuple[int, ...]:
    """Numbers of the plans that these buffers hold."""
    order = sorted(range(len(plans)), key=lambda number: (number != own, number))
    return tuple(
        sorted({next(n for n in order if _holds(held[name], plans[n], name)) for name in names})
    )


def _holds(values: Array, plan: SplitPlan, name: str) -> bool:
    return all(
        tuple(values[at : at + len(field)].tolist()) == field for at, field in contents(plan, name)
    )
