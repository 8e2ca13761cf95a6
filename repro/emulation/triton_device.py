"""A device for Triton that compiles for sm_80 and hands each launch to whoever asked for it.

A kernel that sm_80 has not the types for (float8_e4m3fn) is compiled for sm_89.

Triton asks its active driver for a target, loads what it compiled and launches it; this driver
answers without a device. So everything between `kernel[grid](…)` and the launch is Triton's own:
binding, defaults, specialisation on divisibility and ones, its cache, heuristics.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..compiled import INSTALL_COMPILERS
from ..errors import UsageError
from .numpy_pointer import wrapped

ARCH = 80
NEWER = 89
TOO_OLD = "not supported in this architecture"  # Triton, of a type
# No devices have these numbers, so what is cached for one is never taken for another.
DEVICES: Mapping[int, int] = {ARCH: -1, NEWER: -2}
FUSION = "TRITON_DEFAULT_FP_FUSION"
# Of the device the PTX is compiled for (A100), for programs that ask before they choose a tile.
PROPERTIES: Mapping[str, int] = {
    "max_shared_mem": 166_912,
    "max_num_regs": 65_536,
    "multiprocessor_count": 108,
    "warpSize": 32,
    "sm_clock_rate": 1_410_000,
    "mem_clock_rate": 1_215_000,
    "mem_bus_width": 5_120,
}
MAX_THREADS = 1024
REGISTERS = 32  # of a thread, for programs that ask; PTX has no limit and no number


@dataclass(frozen=True, slots=True)
class TritonLaunch:
    """One launch as Triton would do it. arguments: (name, type, value) of each kernel parameter
    that is left at run time, nested tuples flattened; types as in Triton's signatures.
    """

    name: str
    ptx: str
    grid: tuple[int, int, int]
    warps: int
    shared_bytes: int
    global_scratch: int
    profile_scratch: int
    arguments: tuple[tuple[str, str, Any], ...]


class TritonDevice:
    """Triton's view of a device. `launched` is called for each launch, in order."""

    def __init__(self, launched: Callable[[TritonLaunch], None]) -> None:
        from triton.backends.compiler import GPUTarget

        self._targets = {arch: GPUTarget("cuda", arch, 32) for arch in DEVICES}
        self._arch = ARCH
        self._launched = launched
        self.utils = SimpleNamespace(
            load_binary=self._load,
            unload_module=lambda module: None,
            get_device_properties=lambda device: dict(PROPERTIES),
        )

    def launcher_cls(self, src: Any, metadata: Any) -> Callable[..., None]:
        """The launcher of one compiled kernel."""
        names = src.fn.arg_names
        signature = list(src.signature.values())

        def launch(x: int, y: int, z: int, stream: int, function: str, *rest: Any) -> None:
            # packed metadata, launch metadata, two hooks, then the arguments
            _, launch_metadata, enter, leave, *values = rest
            if enter is not None:
                enter(launch_metadata)
            arguments = tuple(
                entry
                for name, kind, value in zip(names, signature, values, strict=True)
                for entry in _flat(name, kind, value)
            )
            self._launched(
                TritonLaunch(
                    metadata.name,
                    function,
                    (int(x), int(y), int(z)),
                    metadata.num_warps,
                    metadata.shared,
                    getattr(metadata, "global_scratch_size", 0) or 0,
                    getattr(metadata, "profile_scratch_size", 0) or 0,
                    arguments,
                )
            )
            if leave is not None:
                leave(launch_metadata)

        return launch

    @staticmethod
    def _load(
        name: str, binary: bytes, shared: int, device: int
    ) -> tuple[None, str, int, int, int]:
        # no module to unload: this driver may be gone when Triton's object dies
        return None, binary.decode(), REGISTERS, 0, MAX_THREADS

    def get_current_target(self) -> Any:
        return self._targets[self._arch]

    def get_current_device(self) -> int:
        return DEVICES[self._arch]

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return divmod(self._arch, 10)

    @contextmanager
    def newer(self) -> Iterator[None]:
        """The device is of the newer architecture while this is open."""
        before, self._arch = self._arch, NEWER
        try:
            yield
        finally:
            self._arch = before

    def get_active_torch_device(self) -> Any:
        """Where tensors for this device are made: the CPU."""
        import torch

        return torch.device("cpu")

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Runs a call once; the emulator says nothing about time."""

        def once(call: Callable[[], object], *, quantiles: Any = None, **_: Any) -> list[float]:
            call()
            return [0.0] * len(quantiles or (0.5,))

        return once


def _flat(name: str, kind: Any, value: Any) -> Iterator[tuple[str, str, Any]]:
    if kind == "constexpr":
        return
    if isinstance(kind, tuple):
        for number, (one, part) in enumerate(zip(kind, value, strict=True)):
            yield from _flat(f"{name}[{number}]", one, part)
    elif kind.startswith("tensordesc"):
        yield from _descriptor(name, kind, value)
    else:
        yield name, kind, value


def _descriptor(name: str, kind: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """A host-side descriptor as devices without tensor maps get it: pointer, shape, strides and
    two flags, then shape and strides again.
    """
    element = kind.removeprefix("tensordesc<").split("[")[0]
    yield name, f"*{element}", value.base
    for what, numbers in (("shape", value.shape), ("stride", value.strides)):
        for number, one in enumerate(numbers):
            yield f"{name}.{what}[{number}]", "i64", one
    yield f"{name}.padding", "u1", getattr(value, "padding", "zero") == "nan"
    yield f"{name}.round_f32_to_tf32", "u1", bool(getattr(value, "round_f32_to_tf32", False))
    for number, one in enumerate(value.shape):
        yield f"{name}.shape[{number}]", "i32", one
    for number, one in enumerate(value.strides):
        yield f"{name}.stride[{number}]", "i64", one


@contextmanager
def installed(
    launched: Callable[[TritonLaunch], None], *, scratch: Path | None = None
) -> Iterator[None]:
    """Triton launches go to `launched` while this is open; afterwards all is as it was.

    scratch: where folders are made; of a process that may be killed one that goes with it. None:
    where the system has them. UsageError where Triton is not here or its interpreter was chosen
    before it was loaded.
    """
    try:
        import triton
    except ImportError as error:
        raise UsageError(f"Triton cannot be loaded: {error}", hint=INSTALL_COMPILERS) from error
    from triton import knobs
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    if knobs.runtime.interpret:
        raise UsageError(
            "TRITON_INTERPRET is set, so kernels are no compiled ones", hint="unset it"
        )
    config = triton.runtime.driver
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="specrepro-triton-", dir=scratch)
        cache = stack.enter_context(folder)
        stack.enter_context(knobs.cache.scope())
        knobs.cache.dir = cache  # the user's cache is neither read nor filled
        stack.enter_context(_patched(knobs.runtime, "add_stages_inspection_hook", _without_ptxas))
        device = TritonDevice(launched)
        stack.enter_context(_patched(config, "_active", device))
        stack.enter_context(_patched(JITFunction, "run", _run(JITFunction.run, device)))
        stack.enter_context(_patched(Autotuner, "run", _run_first))
        stack.enter_context(_fusion())
        yield


def _run(original: Callable[..., Any], device: TritonDevice) -> Callable[..., Any]:
    from triton.compiler.errors import CompilationError

    newer: dict[int, Any] = {}  # the kernels that need the newer architecture

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = [wrapped(value) for value in args]
        named = {key: wrapped(value) for key, value in kwargs.items()}
        if id(self) not in newer:
            try:
                return original(self, *given, **named)
            except CompilationError as error:
                if TOO_OLD not in str(error):
                    raise
            newer[id(self)] = self
        with device.newer():
            return original(self, *given, **named)

    return run


def _run_first(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Instead of measuring: the first configuration that the kernel's own pruning leaves."""
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    config = self.prune_configs(kwargs)[0] if len(self.configs) > 1 else self.configs[0]
    self.best_config = config
    if config.pre_hook is not None:
        config.pre_hook({**self.nargs, **kwargs, **config.all_kwargs()})
    result = self.fn.run(*args, **kwargs, **config.all_kwargs())
    self.nargs = None
    return result


def _without_ptxas(*stage: Any) -> tuple[str, str] | None:
    """Triton's hook on its stages: PTX is all that is needed, and stands in for the machine code.

    Called with nothing it gives what tells its results apart in a cache.
    """
    if not stage:
        return "specrepro", "specrepro"
    stages = stage[1]
    if "cubin" in stages:
        stages["cubin"] = lambda ptx, metadata: ptx.encode()
    return None


@contextmanager
def _patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _fusion() -> Iterator[None]:
    """Triton 3.9 warns where nobody has said how multiplications and additions are joined."""
    if FUSION in os.environ:
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=FUSION)
        yield
