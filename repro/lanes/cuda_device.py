"""The device of the GPU lanes: tensors in its memory, the shipped kernels launched by the driver.

Kernels of both languages are launched as machine code of the device's own architecture, compiled
here with line numbers where the compilers are installed; else the driver compiles the shipped PTX.
Launches go to the default stream and are waited for when a value is read, so they overlap the host
as an engine's do. A `Timeline` of a scenario keeps its explicit schedule: pieces of work reach the
device in the order that it draws, and a captured graph is replayed launch by launch.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiled import SCRATCH, CompiledKernel, Manifest, Parameter, check_arguments, load
from ..ops import EVERYBODY, Argument, Array, Launch, Owners, Tensor
from ..records import Finding
from ..sanitizer.journal import Writer
from .cuda_driver import Driver
from .cuda_memory import Memory

TYPES = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "fp32": ctypes.c_float}
Kernels = Callable[[str, str], CompiledKernel]  # op, target


class CudaDevice:
    """A CUDA device. memory: bytes that a scenario says it has. waiting: wait behind each launch,
    so that the one that faulted is known. CudaError from any call, once something has failed."""

    def __init__(
        self,
        driver: Driver,
        memory: int,
        journal: Writer,
        *,
        waiting: bool = False,
        kernels: Kernels | None = None,
    ) -> None:
        self.memory = memory
        self.findings: list[Finding] = []  # the scenario finds; a fault of the device is an error
        self.tensors: dict[str, str] = {}
        self.under_way: list[Launch] = []  # launches that were not waited for
        self._driver = driver
        self._memory = Memory(driver)
        self._journal = journal
        self._waiting = waiting
        self._kernels = kernels or shipped
        self._functions: dict[str, tuple[Manifest, Any]] = {}

    def tensor(
        self,
        name: str,
        values: Array,
        *,
        owners: Owners | None = None,
        behind: Array | None = None,
        written: bool = True,
    ) -> Tensor:
        """A tensor of these values; written: False leaves its memory as the driver gives it."""
        shadow, piece = self._memory.place(values, behind, written=written)
        tensor = Tensor(name, shadow, values.shape, owners=owners, behind=behind)
        self.tensors[name] = repr(tensor)
        itemsize = tensor.dtype.itemsize
        self._journal.tensor(name, piece.address, tensor.size, itemsize, piece.reach)
        return tensor

    def launch(self, launch: Launch) -> None:
        manifest, function = self._function(launch.op)
        check_arguments(manifest, launch.args)
        arguments = [
            _argument(parameter, launch.args.get(parameter.name), self._memory)
            for parameter in manifest.parameters
        ]
        rows = launch.requests
        requests = [] if rows is None else [-1 if r == EVERYBODY else int(r) for r in rows]
        self._journal.launch(launch.index, launch.op, manifest.entry, launch.step, requests)
        self.under_way.append(launch)
        self._driver.launch(
            function, launch.grid, manifest.threads, manifest.shared_bytes, arguments
        )
        if self._waiting:
            self.wait()

    def read(self, tensor: Tensor) -> Array:
        self.wait()
        flat = np.empty(tensor.size, tensor.dtype)
        if flat.nbytes:
            self._driver.to_host(flat.ctypes.data, self._memory.address(tensor), flat.nbytes)
        strides = [stride * tensor.dtype.itemsize for stride in tensor.strides]
        return np.lib.stride_tricks.as_strided(flat, tensor.shape, strides).copy()

    def write(self, tensor: Tensor, values: ArrayLike) -> None:
        flat = np.ascontiguousarray(np.asarray(values, tensor.dtype).reshape(-1))
        if flat.size != tensor.size:
            flat = np.ascontiguousarray(np.broadcast_to(flat, (tensor.size,)))
        if flat.nbytes:
            self._driver.to_device(self._memory.address(tensor), flat.ctypes.data, flat.nbytes)

    def allocate(self, name: str, size: int) -> bool:
        return size <= self.memory and self._driver.can_allocate(size)

    def wait(self) -> None:
        """Wait for all launches; they have ended well if this returns."""
        self._driver.synchronize()
        for launch in self.under_way:
            self._journal.ended(launch.index)
        self.under_way.clear()
        self._memory.clear()

    def finish(self) -> None:
        """Wait once more and leave the completion mark in the journal."""
        self.wait()
        self._journal.complete()

    def _function(self, op: str) -> tuple[Manifest, Any]:
        if op not in self._functions:
            kernel = self._kernels(op, self._driver.target)
            image = kernel.cubin or kernel.ptx.encode()
            manifest = kernel.manifest
            function = self._driver.function(image, manifest.entry, manifest.shared_bytes)
            self._functions[op] = manifest, function
        return self._functions[op]


def shipped(op: str, target: str, kept: Path | None = None) -> CompiledKernel:
    """The kernel of an op for a target: machine code where the compilers are here, else its PTX.

    kept: a folder for machine code of an earlier process of the same run.
    """
    from ..compilation import CompilerMissingError, compile_kernel

    kernel = load(op)
    name = f"{op}-{target}-{hashlib.sha256(kernel.ptx.encode()).hexdigest()[:16]}"
    if kept is not None and (cubin := _kept(kept / name)) is not None:
        return cubin
    try:
        made = compile_kernel(op, target=target, machine_code=True)
    except CompilerMissingError:
        return kernel
    if kept is not None:
        _keep(kept / name, made)
    return made


def _kept(path: Path) -> CompiledKernel | None:
    try:
        manifest = Manifest.from_json(json.loads(path.with_suffix(".json").read_text("utf-8")))
        cubin = path.with_suffix(".cubin").read_bytes()
    except (OSError, ValueError):
        return None  # not kept yet, or half: it is compiled
    return CompiledKernel(manifest, "", shipped=False, cubin=cubin)


def _keep(path: Path, kernel: CompiledKernel) -> None:
    """Two steps, the manifest last: without it nothing is taken over."""
    if kernel.cubin is None:
        return
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".cubin").write_bytes(kernel.cubin)
    manifest = path.with_suffix(".part")
    manifest.write_text(json.dumps(kernel.manifest.to_json()), "utf-8")
    manifest.replace(path.with_suffix(".json"))


def _argument(parameter: Parameter, value: Argument, memory: Memory) -> tuple[int | float, Any]:
    if parameter.type == SCRATCH or value is None:
        return 0, ctypes.c_void_p
    if isinstance(value, Tensor):
        return memory.address(value), ctypes.c_void_p
    if parameter.type == "fp32":
        return float(value), ctypes.c_float
    return int(value), TYPES[parameter.type]
