"""The bench: tensors, and launches of one compiled kernel in the emulator.

The PTX comes from code of a build and is data here: it is parsed, and executed within limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...emulation.element_types import element_type
from ...emulation.memory import aligned, base_address, encode
from ...emulator import checks
from ...emulator.findings import findings
from ...emulator.launch import Buffer, launch
from ...emulator.ptx import Kernel, Parameter, parse
from ...errors import KernelError
from ...ops import NOBODY, Owners
from ...records import Source, to_json
from .probe import Owned, Tensor
from .subject import Pointer, Scalar, Subject

MAX_INSTRUCTIONS = 400_000  # of a launch of one or a few blocks; a probe's are some hundreds
NAMES = {"fp16": "f16", "fp32": "f32", "fp64": "f64"}


@dataclass(frozen=True, slots=True)
class Machine:
    """A kernel of a build, compiled. order: the role of each parameter. places: for each line of
    the lifted module, the file and line of the build, ("", 0) for none."""

    ptx: str
    entry: str
    threads: int
    shared_bytes: int
    order: tuple[str, ...]
    places: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class EmulatorBench:
    """A `Bench` on the emulator. launches: how many there were. wrote: from the last launch, which
    line wrote which element of the tensor that was traced."""

    subject: Subject
    machine: Machine
    kernel: Kernel = field(init=False)
    launches: int = 0
    wrote: dict[int, Source] = field(default_factory=dict)

    def __post_init__(self) -> None:
        module = parse(self.machine.ptx)
        if self.machine.entry not in module.kernels:
            raise KernelError(f"its PTX has no entry {self.machine.entry}")
        self.kernel = module.kernels[self.machine.entry]
        if len(self.kernel.params) < len(self.machine.order):
            raise KernelError(f"its PTX has {len(self.kernel.params)} parameters")

    def tensor(
        self, name: str, dtype: str, values: Sequence[float], owned: Owned | None = None
    ) -> Tensor:
        kind = element_type(NAMES.get(dtype, dtype))
        if kind is None:
            raise KernelError(f"{name}: no element type {dtype}")
        data = aligned(len(values), np.dtype(kind.numpy))
        data[:] = encode(np.array(values, np.float64), kind) if kind.kind == "f" else values
        owners = None if owned is None else Owners(owned.unit, np.array(owned.of, np.int32))
        return Tensor(name, data, owners)

    def addresses(self, name: str, of: Sequence[Tensor]) -> Tensor:
        return Tensor(name, aligned(len(of), np.dtype("<i8")), None, tuple(of))

    def launch(
        self,
        grid: tuple[int, int, int],
        given: Mapping[str, Tensor],
        *,
        request: Sequence[int] | None = None,
        step: int | None = None,
        traced: Tensor | None = None,
    ) -> list[Mapping[str, Any]]:
        passed = self._passed(given)
        self.wrote = {} if traced is None else self._traced(grid, passed, traced)
        found = self._run(grid, passed, request, step)
        self.launches += 1
        return found

    def wrong_value(
        self, tensor: Tensor, element: int, expected: float, lands_in: str | None = None
    ) -> Mapping[str, Any]:
        source = self.wrote.get(element)
        return {
            "kind": "wrong_value",
            "launch": self.launches - 1,
            "op": self.machine.entry,
            "tensor": tensor.name,
            "elements": [element, element],
            "count": 1,
            "expected": expected,
            "got": tensor.values[element],
            "lands_in": lands_in,
            "source": None if source is None else to_json(source),
        }

    def _passed(self, given: Mapping[str, Tensor]) -> list[Tensor | float | int]:
        """What goes to each parameter, in order."""
        unknown = given.keys() - self.subject.roles.keys()
        if unknown:
            raise KeyError(f"no role {', '.join(sorted(unknown))}")
        passed: list[Tensor | float | int] = []
        for name in self.machine.order:
            role = self.subject.roles[name]
            if isinstance(role, Scalar):
                passed.append(role.value)
            elif name in given:
                passed.append(given[name])
            elif isinstance(role, Pointer):
                passed.append(self.tensor(name, role.dtype, [role.fill] * role.size))
            else:
                raise KernelError(f"{name} is nothing, and is left at run time")
        return passed

    def _run(
        self,
        grid: tuple[int, int, int],
        passed: Sequence[Tensor | float | int],
        request: Sequence[int] | None,
        step: int | None,
    ) -> list[Mapping[str, Any]]:
        tensors = _reached(passed)
        buffers = {id(t): Buffer(t.name, t.data, t.owners) for t in tensors}
        for tensor in tensors:
            for element, target in enumerate(tensor.targets):
                number = next(n for n, t in enumerate(tensors) if t is target)
                tensor.data[element] = base_address(number, target.data)
        direct = {id(value) for value in passed if isinstance(value, Tensor)}
        # what only addresses lead to gets parameters of its own, so that the launch knows it
        extra = [t for t in tensors if id(t) not in direct]
        scratch = len(self.kernel.params) - len(passed)
        kernel = replace(
            self.kernel,
            params=(*self.kernel.params, *(Parameter(f"reached_{t.name}", "u64") for t in extra)),
        )
        args = [buffers[id(v)] if isinstance(v, Tensor) else v for v in passed]
        report = launch(
            kernel,
            grid,
            (self.machine.threads, 1, 1),
            [*args, *[None] * scratch, *(buffers[id(t)] for t in extra)],
            shared_bytes=self.machine.shared_bytes,
            requests=None if request is None else np.array(request, np.int32),
            max_instructions=MAX_INSTRUCTIONS,
            checks=checks.DEFAULT,
        )
        sizes = {t.name: (t.data.size, t.data.itemsize) for t in tensors}
        found = findings(report, self.machine.entry, self.launches, sizes, step=step)
        return [to_json(replace(one, source=self._place(one.source))) for one in found]

    def _traced(
        self,
        grid: tuple[int, int, int],
        passed: Sequence[Tensor | float | int],
        traced: Tensor,
    ) -> dict[int, Source]:
        """Which line writes which element: a launch on copies, to which nobody may write."""
        copies = {
            id(t): Tensor(t.name, _copy(t.data), Owners(1, np.full(t.data.size, NOBODY, np.int32)))
            if t is traced
            else Tensor(t.name, _copy(t.data), None)
            for t in _reached(passed)
        }
        for tensor in _reached(passed):
            copies[id(tensor)].targets = tuple(copies[id(t)] for t in tensor.targets)
        again = [copies[id(v)] if isinstance(v, Tensor) else v for v in passed]
        wrote: dict[int, Source] = {}
        for one in self._run(grid, again, [0] * grid[0], None):
            if one["kind"] == "foreign_write" and one["tensor"] == traced.name and one["source"]:
                source = Source(one["source"]["file"], one["source"]["line"])
                first, last = one["elements"]
                wrote |= dict.fromkeys(range(first, last + 1), source)
        return wrote

    def _place(self, source: Source | None) -> Source | None:
        """The line of the build that a line of the lifted module is."""
        if source is None or source.file != LIFTED:
            return None
        if not 0 < source.line <= len(self.machine.places):
            return None
        file, line = self.machine.places[source.line - 1]
        return Source(file, line) if line else None


LIFTED = "kernel.py"


def _copy(data: Any) -> Any:
    again = aligned(data.size, data.dtype)
    again[:] = data
    return again


def _reached(passed: Sequence[Tensor | float | int]) -> list[Tensor]:
    """Every tensor of a launch once, in the order in which the launch numbers them: those that
    are passed, then those that addresses lead to."""
    found: dict[int, Tensor] = {}
    direct = [value for value in passed if isinstance(value, Tensor)]
    for tensor in (*direct, *(t for holder in direct for t in holder.targets)):
        found.setdefault(id(tensor), tensor)
    return list(found.values())
