"""The device of the GPU lanes: tensors in its memory, kernels launched on it.

CUDA C++ is launched by the driver, as machine code of the device's own architecture with line
numbers where the compilers are installed; else the driver compiles the shipped PTX. Triton kernels
are launched by Triton itself on torch tensors where both are installed (`triton_launch.py`), else
like those of CUDA C++. Launches and copies from the host are waited for when a value is read, so
they overlap the host as an engine's do.

A `Timeline` of a scenario uses the device's own streams and events, in the order that it draws, and
its captured graphs are captured and replayed by the device.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiled import SCRATCH, Manifest, Parameter, check_arguments, load
from ..errors import LaneError
from ..ops import EVERYBODY, Argument, Array, Launch, Owners, Tensor
from ..records import Finding
from ..sanitizer.journal import Writer
from .cuda_driver import Driver
from .cuda_memory import Memory
from .cuda_streams import Streams
from .machine_code import Kernels, shipped
from .triton_launch import TritonLaunches

TYPES = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "fp32": ctypes.c_float}
TRITON = "triton"
NO_GRAPHS = "a captured graph cannot be seen by compute-sanitizer's lanes; use lane coredump"
Own = Callable[[], TritonLaunches]


class NoGraphsError(LaneError):
    """The scenario captures a graph, in a lane that captures none."""


class CudaDevice:
    """A CUDA device. memory: bytes that a scenario says it has. placement: see `Memory`.

    waiting: wait behind each launch, so that the one that faulted is known, and capture no graph.
    blocking: the driver itself waits for a launch before it returns (CUDA_LAUNCH_BLOCKING).
    kernels: of an op, for a target. own: Triton's own launch, asked for at the first Triton kernel;
    LaneError from it says why the driver launches instead. CudaError from any call, once something
    has failed.
    """

    def __init__(
        self,
        driver: Driver,
        memory: int,
        journal: Writer,
        *,
        waiting: bool = False,
        blocking: bool = False,
        placement: str = "",
        kernels: Kernels | None = None,
        own: Own | None = None,
    ) -> None:
        self.memory = memory
        self.findings: list[Finding] = []  # the scenario finds; a fault of the device is an error
        self.tensors: dict[str, str] = {}
        self.under_way: list[Launch] = []  # launches that were not waited for
        self.said: dict[str, str] = {}  # how kernels of a language were launched, for the reader
        self.graphs = self.replays = 0
        self._driver = driver
        self._memory = Memory(driver, placement)
        self._streams = Streams(driver)
        self._journal = journal
        self._waiting = waiting
        self._blocking = blocking
        self._kernels = kernels or shipped
        self._make_own = own
        self._own: TritonLaunches | None = None
        self._loaded: dict[str, tuple[Manifest, Any]] = {}

    # --- what a Device offers ------------------------------------------------------------------

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
        stream = self._streams.current
        shadow, piece = self._memory.place(values, behind, stream=stream, written=written)
        tensor = Tensor(name, shadow, values.shape, owners=owners, behind=behind)
        self.tensors[name] = repr(tensor)
        itemsize = tensor.dtype.itemsize
        self._journal.tensor(name, piece.address, tensor.size, itemsize, piece.reach)
        return tensor

    def launch(self, launch: Launch) -> None:
        self._load(launch)
        self._note(launch)
        self._start(launch, self._streams.current)
        if self._waiting:
            self.wait()
        elif self._blocking:  # it returned, so it and all before it have ended well
            self._ended()

    def read(self, tensor: Tensor) -> Array:
        self.wait()
        flat = np.empty(tensor.size, tensor.dtype)
        if flat.nbytes:
            self._driver.to_host(flat.ctypes.data, self._memory.address(tensor), flat.nbytes)
        strides = [stride * tensor.dtype.itemsize for stride in tensor.strides]
        return np.lib.stride_tricks.as_strided(flat, tensor.shape, strides).copy()

    def write(self, tensor: Tensor, values: ArrayLike) -> None:
        flat = np.asarray(values, tensor.dtype).reshape(-1)
        if flat.size != tensor.size:
            flat = np.broadcast_to(flat, (tensor.size,))
        self._memory.send(self._memory.address(tensor), flat, self._streams.current)

    def allocate(self, name: str, size: int) -> bool:
        return size <= self.memory and self._driver.can_allocate(size)

    # --- streams, events, graphs: `Streaming` --------------------------------------------------

    def use(self, stream: str) -> None:
        self._streams.use(stream)

    def record(self, event: Any) -> Any:
        return self._streams.record(event)

    def follow(self, event: Any) -> None:
        self._streams.follow(event)

    def wait_for(self, event: Any) -> None:
        if event is None:
            self.wait()
        else:
            self._driver.wait_for(event)

    def capture(self, launches: Sequence[Launch]) -> Any:
        """A graph of these launches; NoGraphsError where each launch is waited for."""
        if self._waiting:
            raise NoGraphsError(NO_GRAPHS)
        for launch in launches:  # nothing may be loaded while a stream is captured
            self._load(launch)
        stream = self._streams.of("capture")

        def all_of_them() -> None:
            for launch in launches:
                self._start(launch, stream)

        self.graphs += 1
        if (own := self._own) is not None:
            return self._by_torch("capture", lambda: own.capture(stream, all_of_them))
        self._driver.begin_capture(stream)
        all_of_them()
        return self._driver.end_capture(stream)

    def replay(self, graph: Any, launches: Sequence[Launch]) -> None:
        for launch in launches:
            self._note(launch)
        self.replays += 1
        if (own := self._own) is not None:
            self._by_torch("replay", lambda: own.replay(graph, self._streams.current))
        else:
            self._driver.launch_graph(graph, self._streams.current)

    # -------------------------------------------------------------------------------------------

    def how(self) -> str:
        """How kernels were launched, in words for a reader; "" for nothing to tell."""
        said = list(self.said.values())
        if self.graphs:
            by = "torch.cuda.graph" if self._own is not None else "the driver"
            said.append(f"{self.graphs} graphs captured by {by}, replayed {self.replays} times")
        return "; ".join(said)

    def wait(self) -> None:
        """Wait for all launches; they have ended well if this returns."""
        self._driver.synchronize()
        self._ended()
        self._memory.clear()

    def _ended(self) -> None:
        for launch in self.under_way:
            self._journal.ended(launch.index)
        self.under_way.clear()

    def finish(self) -> None:
        """Wait once more and leave the completion mark in the journal."""
        self.wait()
        self._journal.complete()

    def _note(self, launch: Launch) -> None:
        """Say, before it happens, what is about to run."""
        rows = launch.requests
        requests = [] if rows is None else [-1 if r == EVERYBODY else int(r) for r in rows]
        entry = self._loaded[launch.op][0].entry
        self._journal.launch(launch.index, launch.op, entry, launch.step, requests)
        self.under_way.append(launch)

    def _start(self, launch: Launch, stream: int) -> None:
        manifest, function = self._loaded[launch.op]
        address = self._memory.address
        if function is None and (own := self._own) is not None:
            self._by_torch(launch.op, lambda: own.launch(launch, manifest, address, stream))
            return
        arguments = [
            _argument(parameter, launch.args.get(parameter.name), self._memory)
            for parameter in manifest.parameters
        ]
        grid, threads, shared = launch.grid, manifest.threads, manifest.shared_bytes
        self._driver.launch(function, grid, threads, shared, arguments, stream)

    def _load(self, launch: Launch) -> None:
        """Check a launch, and have its kernel compiled and loaded; nothing is launched for it."""
        if launch.op not in self._loaded:
            self._loaded[launch.op] = self._found(launch.op)
        manifest, function = self._loaded[launch.op]
        check_arguments(manifest, launch.args)
        if function is None and (own := self._own) is not None:
            address = self._memory.address
            self._by_torch(launch.op, lambda: own.prepare(launch, manifest, address))

    def _found(self, op: str) -> tuple[Manifest, Any]:
        """A kernel, and the driver's function; None for one that Triton launches itself."""
        if self._make_own is not None:
            manifest = load(op).manifest
            if manifest.language == TRITON and self._triton() is not None:
                return manifest, None
        kernel = self._kernels(op, self._driver.target)
        manifest = kernel.manifest
        image = kernel.cubin or kernel.ptx.encode()
        return manifest, self._driver.function(image, manifest.entry, manifest.shared_bytes)

    def _triton(self) -> TritonLaunches | None:
        """Triton's own launch; None where the driver has to do it, which is said once."""
        if self._own is None and self._make_own is not None and TRITON not in self.said:
            try:
                self._own = self._make_own()
                self.said[TRITON] = f"Triton kernels launched by {self._own.versions}"
            except LaneError as error:
                self.said[TRITON] = f"Triton kernels launched by the driver ({error})"
        return self._own

    def _by_torch(self, what: str, call: Callable[[], Any]) -> Any:
        """Call Triton or torch, whose word for any error of the driver is RuntimeError."""
        try:
            return call()
        except RuntimeError as error:
            self._driver.synchronize()  # the driver's own word, where the device has failed
            raise LaneError(f"{what} by Triton and torch: {error}") from error


def _argument(parameter: Parameter, value: Argument, memory: Memory) -> tuple[int | float, Any]:
    if parameter.type == SCRATCH or value is None:
        return 0, ctypes.c_void_p
    if isinstance(value, Tensor):
        return memory.address(value), ctypes.c_void_p
    if parameter.type == "fp32":
        return float(value), ctypes.c_float
    return int(value), TYPES[parameter.type]
