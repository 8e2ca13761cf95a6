"""Lane `reference`: the pure-Python references, on the host.

Executes no kernel. Wrong accesses are recorded and masked by `Tensor`; this file turns them into
findings, one launch at a time. It shares no bounds code with the emulator.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..findings import bytes_past_end, ranges
from ..ops import EVERYBODY, Array, Launch, Owners, Tensor
from ..records import Finding, Kind, Source

Program = Callable[..., Any]
Key = tuple[Kind, str, int, str, int | None]  # kind, file, line, tensor, request


class ReferenceDevice:
    """Host memory and the references. `findings` grows launch by launch; `memory` in bytes.

    reference: the program of an op, by its name; those of kernels/ unless others are given.
    """

    def __init__(self, memory: int, reference: Callable[[str], Program] | None = None) -> None:
        self.memory = memory
        self._program = reference or _reference
        self.findings: list[Finding] = []
        self.tensors: dict[str, str] = {}  # what a reader is told of each tensor found wrong
        self._launch: Launch | None = None
        self._wrong: dict[Key, list[NDArray[np.int64]]] = defaultdict(list)
        self._tensors: dict[str, Tensor] = {}

    def tensor(
        self,
        name: str,
        values: Array,
        *,
        owners: Owners | None = None,
        behind: Array | None = None,
    ) -> Tensor:
        flat = np.array(values, order="C").reshape(-1)
        return Tensor(name, flat, values.shape, owners=owners, behind=behind, recorder=self)

    def launch(self, launch: Launch) -> None:
        reference = self._program(launch.op)
        self._launch = launch
        self._tensors = {t.name: t for t in launch.args.values() if isinstance(t, Tensor)}
        try:
            reference(**launch.args, rows=launch.grid[0])
        finally:
            self._launch = None
            self._collect(launch)

    def read(self, tensor: Tensor) -> Array:
        return np.lib.stride_tricks.as_strided(
            tensor.data, tensor.shape, [s * tensor.dtype.itemsize for s in tensor.strides]
        ).copy()

    def write(self, tensor: Tensor, values: ArrayLike) -> None:
        tensor.data[:] = np.asarray(values, tensor.dtype).reshape(-1)

    def allocate(self, name: str, size: int) -> bool:
        return size <= self.memory

    def request(self, row: int) -> int | None:
        """The request that row `row` of the current launch works for."""
        if self._launch is None or self._launch.requests is None:
            return None
        request = int(self._launch.requests[row])
        return None if request == EVERYBODY else request

    def wrong(self, kind: Kind, tensor: Tensor, elements: NDArray[np.int64], row: int) -> None:
        """Note what `Tensor` saw, with the line of the reference that did it."""
        frame = sys._getframe(1)
        while frame.f_back is not None and not frame.f_code.co_filename.endswith("reference.py"):
            frame = frame.f_back
        # specrepro.kernels.rope.reference → kernels/rope/reference.py
        module = str(frame.f_globals.get("__name__", "?")).removeprefix("specrepro.")
        file = f"{module.replace('.', '/')}.py"
        key = (kind, file, frame.f_lineno, tensor.name, self.request(row))
        self._wrong[key].append(elements.copy())

    def _collect(self, launch: Launch) -> None:
        for (kind, file, line, name, request), parts in self._wrong.items():
            tensor = self._tensors[name]
            self.tensors.setdefault(name, repr(tensor))
            for first, last in ranges(np.concatenate(parts)):
                self.findings.append(
                    Finding(
                        kind,
                        launch=launch.index,
                        op=launch.op,
                        tensor=name,
                        elements=(first, last),
                        count=last - first + 1,
                        bytes_past_end=bytes_past_end(first, tensor.size, tensor.dtype.itemsize),
                        width=tensor.dtype.itemsize,
                        source=Source(file, line),
                        request=request,
                        step=launch.step,
                        lands_in=_lands_in(tensor, first),
                    )
                )
        self._wrong.clear()


def _lands_in(tensor: Tensor, element: int) -> str:
    if 0 <= element < tensor.size and tensor.owners is not None:
        unit = element // tensor.owners.unit
        owner = int(tensor.owners.of[unit])
        whose = f"request {owner}'s" if owner >= 0 else "free"
        return f"{whose} unit {unit} of {tensor.name}"
    if tensor.behind is not None and 0 <= element - tensor.size < tensor.behind.size:
        return f"stated memory behind {tensor.name}"
    return "unmapped memory"


def _reference(op: str) -> Program:
    module = import_module(f"...kernels.{op}.reference", __package__)
    reference: Program = getattr(module, op)
    return reference
