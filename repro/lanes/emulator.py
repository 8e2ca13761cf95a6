"""Lane `emulator`: the PTX of the same kernels, executed on numpy with every access checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..compiled import CompiledKernel, check_arguments, load
from ..emulator import checks
from ..emulator.findings import findings
from ..emulator.launch import Buffer, launch
from ..ops import Array, Launch, Owners, StoppedError, Tensor
from ..records import Finding

ALIGNMENT = 256  # bytes, as a device allocator gives
# Races between blocks are warnings, and no finding of a trial.
CHECKS = checks.ALL - {checks.GLOBAL_RACE}


class EmulatorDevice:
    """Host memory and emulated kernels. `findings` grows launch by launch; `memory` in bytes."""

    def __init__(
        self, memory: int, *, stop_at_first: bool = False, checks: frozenset[str] = CHECKS
    ) -> None:
        self.memory = memory
        self.checks = checks
        self.stop_at_first = stop_at_first
        self.findings: list[Finding] = []
        self.tensors: dict[str, str] = {}  # what a reader is told of each tensor found wrong
        self.instructions = 0
        self._kernels: dict[str, CompiledKernel] = {}

    def tensor(
        self,
        name: str,
        values: Array,
        *,
        owners: Owners | None = None,
        behind: Array | None = None,
    ) -> Tensor:
        return Tensor(name, aligned(values), values.shape, owners=owners, behind=behind)

    def launch(self, launch_: Launch) -> None:
        kernel = self._kernel(launch_.op)
        manifest = kernel.manifest
        check_arguments(manifest, launch_.args)
        arguments = [
            _argument(launch_.args[parameter.name]) if parameter.name in launch_.args else None
            for parameter in manifest.parameters
        ]
        report = launch(
            kernel.parsed(),
            grid=launch_.grid,
            block=manifest.threads,
            args=arguments,
            shared_bytes=manifest.shared_bytes,
            requests=launch_.requests,
            stop_at_first=self.stop_at_first,
            checks=self.checks,
        )
        self.instructions += report.instructions
        tensors = {t.name: t for t in launch_.args.values() if isinstance(t, Tensor)}
        sizes = {name: (t.size, t.dtype.itemsize) for name, t in tensors.items()}
        self.findings += findings(report, launch_.op, launch_.index, sizes, step=launch_.step)
        for access in report.accesses:
            if access.buffer in tensors:
                self.tensors.setdefault(access.buffer, repr(tensors[access.buffer]))
        if report.accesses and self.stop_at_first:
            raise StoppedError

    def read(self, tensor: Tensor) -> Array:
        return np.lib.stride_tricks.as_strided(
            tensor.data, tensor.shape, [s * tensor.dtype.itemsize for s in tensor.strides]
        ).copy()

    def write(self, tensor: Tensor, values: ArrayLike) -> None:
        tensor.data[:] = np.asarray(values, tensor.dtype).reshape(-1)

    def allocate(self, name: str, size: int) -> bool:
        return size <= self.memory

    def _kernel(self, op: str) -> CompiledKernel:
        if op not in self._kernels:
            self._kernels[op] = load(op)
        return self._kernels[op]


def aligned(values: Array) -> Array:
    """A flat copy of `values` that starts at a multiple of ALIGNMENT."""
    raw = np.empty(values.nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    flat = raw[start : start + values.nbytes].view(values.dtype)
    flat[:] = np.asarray(values).reshape(-1)
    return flat


def _argument(value: Tensor | int | float | None) -> Buffer | int | float | None:
    if isinstance(value, Tensor):
        return Buffer(value.name, value.data, value.owners, value.behind)
    return value
