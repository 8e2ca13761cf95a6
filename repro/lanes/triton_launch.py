"""Triton kernels by Triton's own launch, on torch tensors that lie on our memory.

`kernel[grid](…)` as an engine calls it: Triton binds the arguments, compiles for the device and
launches through its own launcher (runtime/jit.py and backends/nvidia/driver.c of Triton 3.9.0), on
the current stream of torch. Two things are held to the shipped kernel, so that every lane executes
the same program: parameters have the types of its SIGNATURE, and no number is specialised on.

Nothing is launched but what a scenario launches. A kernel is compiled and loaded without a launch
(`warmup`), and one that Triton would tune by launching it is refused: both would touch the memory
of a case. Streams are those of the driver (`torch.cuda.ExternalStream`); graphs are captured and
replayed by torch (`torch.cuda.graph` and `torch.cuda.CUDAGraph`, in torch/cuda/graphs.py of torch
2.13.0).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..compilation import source_module
from ..compiled import PACKAGE, Manifest
from ..errors import KernelError, LaneError
from ..ops import Launch, Tensor
from . import dlpack

INSTALL = "for Triton's own launch install the extra `torch`"
ORDINAL = 0  # the one device that a trial's process sees
Addresses = Callable[[Tensor], int]


class TritonLaunches:
    """Triton and torch of this process, ready to launch. cache: Triton's folder of machine code.

    LaneError where one of the two is not installed, sees no CUDA device, or cannot build its
    launcher (which takes a C compiler). The primary context is that of `Driver`.
    """

    def __init__(self, cache: Path) -> None:
        self._torch = _torch()
        self._triton = _triton(cache)
        self._kernels: dict[str, tuple[Any, ModuleType]] = {}
        self._tensors: dict[tuple[int, int, str], tuple[Any, dlpack.Managed]] = {}
        self._streams: dict[int, Any] = {}
        self.graphs = 0

    @property
    def versions(self) -> str:
        """Which Triton and which torch launch."""
        return f"Triton {self._triton.__version__} on tensors of torch {self._torch.__version__}"

    def prepare(self, launch: Launch, manifest: Manifest, address: Addresses) -> None:
        """Compile and load the kernel of a launch, without launching it.

        KernelError where Triton refuses it.
        """
        from triton.errors import TritonError

        kernel, module = self._kernel(launch.op, manifest.source)
        given = self._arguments(launch, manifest, address)
        try:
            made = kernel.warmup(*given, grid=launch.grid, **options(module))
            made.run  # noqa: B018 - a property that loads the machine code
        except TritonError as error:
            raise KernelError(f"Triton refuses it: {error}", where=manifest.source) from error

    def launch(self, launch: Launch, manifest: Manifest, address: Addresses, stream: int) -> None:
        """Launch on a stream. RuntimeError is what Triton makes of an error of the driver."""
        kernel, module = self._kernel(launch.op, manifest.source)
        given = self._arguments(launch, manifest, address)
        with self._torch.cuda.stream(self._stream(stream)):
            kernel[launch.grid](*given, **options(module))

    def capture(self, stream: int, launches: Callable[[], None]) -> Any:
        """The graph of what `launches` puts on a stream."""
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph, stream=self._stream(stream)):
            launches()
        self.graphs += 1
        return graph

    def replay(self, graph: Any, stream: int) -> None:
        """Run a graph once, on a stream."""
        with self._torch.cuda.stream(self._stream(stream)):
            graph.replay()

    def _stream(self, handle: int) -> Any:
        if handle not in self._streams:
            cuda = self._torch.cuda
            self._streams[handle] = (
                cuda.ExternalStream(handle, device=ORDINAL)
                if handle
                else cuda.default_stream(ORDINAL)
            )
        return self._streams[handle]

    def _kernel(self, op: str, source: str) -> tuple[Any, ModuleType]:
        if op not in self._kernels:
            module = source_module(PACKAGE / source, f"specrepro_launched_{op}")
            self._kernels[op] = annotated(getattr(module, op), module.SIGNATURE, source), module
        return self._kernels[op]

    def _arguments(self, launch: Launch, manifest: Manifest, address: Addresses) -> list[Any]:
        values = [launch.args[name] for name in manifest.arguments]
        return [
            self._tensor(address(value), value) if isinstance(value, Tensor) else _number(value)
            for value in values
        ]

    def _tensor(self, address: int, of: Tensor) -> Any:
        """A torch tensor of the elements of one of ours, on the very same memory."""
        key = address, of.size, of.dtype.str
        if key not in self._tensors:
            where = (dlpack.CUDA, ORDINAL)
            managed = dlpack.managed(address, of.size, of.dtype, where)
            made = self._torch.utils.dlpack.from_dlpack(dlpack.capsule(managed))
            if of.size and made.data_ptr() != address:
                raise LaneError(f"torch does not take {of!r} where it lies")
            self._tensors[key] = made, managed
        return self._tensors[key][0]


def annotated(kernel: Any, signature: Mapping[str, str], source: str) -> Any:
    """A Triton kernel whose parameters have the types of `signature`, specialised on no number.

    KernelError for one that is more than a compiled function: an autotuner launches to choose.
    """
    from triton import JITFunction

    if type(kernel) is not JITFunction:
        what = type(kernel).__name__
        raise KernelError(f"Triton would launch it to tune it ({what})", where=source)
    function = kernel.fn
    parameters = inspect.signature(function).parameters.values()
    function.__signature__ = inspect.Signature(
        [one.replace(annotation=signature.get(one.name, one.annotation)) for one in parameters]
    )
    numbers = [name for name, kind in signature.items() if not kind.startswith("*")]
    return JITFunction(function, do_not_specialize=numbers)


def options(module: ModuleType) -> dict[str, Any]:
    """As `compilation` compiles it."""
    options = {"num_warps": getattr(module, "NUM_WARPS", 1), "num_stages": 1}
    return {**options, "enable_fp_fusion": False, **module.CONSTANTS}


def _number(value: Any) -> Any:
    """A number as Python has it; Triton knows no other."""
    return value.item() if isinstance(value, np.generic) else value


def _torch() -> Any:
    if find_spec("torch") is None:
        raise LaneError("torch is not installed", hint=INSTALL)
    try:
        import torch
        import torch.utils.dlpack
    except Exception as error:  # a library it needs, of whatever kind
        raise LaneError(f"torch cannot be imported: {error}") from error
    if torch.version.cuda is None:
        raise LaneError(f"torch {torch.__version__} is built without CUDA", hint=INSTALL)
    if not torch.cuda.is_available():
        raise LaneError(f"torch {torch.__version__} sees no CUDA device")
    torch.cuda.set_device(ORDINAL)
    return torch


def _triton(cache: Path) -> Any:
    if find_spec("triton") is None:
        raise LaneError("triton is not installed", hint=INSTALL)
    import triton

    triton.knobs.cache.dir = str(cache)  # the user's is neither read nor filled
    try:
        triton.runtime.driver.active.get_current_target()
    except Exception as error:  # no C compiler, no libcuda to link: it raises what it meets
        raise LaneError(f"Triton cannot build its launcher: {error}") from error
    return triton
