"""The CUDA driver, through cuda-bindings: what a device lane calls, each call checked.

A process that has met a fatal error has a context that answers everything with that error; nothing
here tries to go on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ..errors import LaneError

INSTALL = "install the extra `gpu`; in a checkout: pip install -e '.[gpu]'"
# Errors with which a kernel's own fault ends a context: an illegal address, an assertion, a stack,
# an instruction, a misaligned address, an address space, a program counter, an unspecified failure.
FAULTS = frozenset({700, 710, 714, 715, 716, 717, 718, 719})
OUT_OF_MEMORY = 2
STATIC_SHARED = 48 << 10  # bytes of shared memory that a launch may have without asking


class CudaError(LaneError):
    """A call of the driver failed. code: CUresult; name: `CUDA_ERROR_ILLEGAL_ADDRESS`."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{name} ({code}) from {call}")
        self.code = code
        self.name = name


class Driver:
    """The driver with the primary context of one device current. LaneError where there is none."""

    def __init__(self, ordinal: int = 0) -> None:
        self._cuda = _bindings()
        self._check("cuInit", self._cuda.cuInit(0))
        self.device = self._check("cuDeviceGet", self._cuda.cuDeviceGet(ordinal))
        context = self._check(
            "cuDevicePrimaryCtxRetain", self._cuda.cuDevicePrimaryCtxRetain(self.device)
        )
        self._check("cuCtxSetCurrent", self._cuda.cuCtxSetCurrent(context))
        major, minor = (
            self._attribute(f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}")
            for part in ("MAJOR", "MINOR")
        )
        self.target = f"sm_{major}{minor}"

    # --- memory --------------------------------------------------------------------------------

    def granularity(self) -> int:
        """Bytes of which the size of a mapping is a multiple."""
        flag = self._cuda.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        call = self._cuda.cuMemGetAllocationGranularity
        return int(self._check("cuMemGetAllocationGranularity", call(self._property(), flag)))

    def reserve(self, size: int) -> int:
        """Address of a range of `size` bytes in which nothing is mapped."""
        found = self._cuda.cuMemAddressReserve(size, 0, self._cuda.CUdeviceptr(0), 0)
        return int(self._check("cuMemAddressReserve", found))

    def map(self, address: int, size: int) -> Any:
        """Map fresh memory at an address, readable and writable; its handle."""
        cuda = self._cuda
        handle = self._check("cuMemCreate", cuda.cuMemCreate(size, self._property(), 0))
        self._check("cuMemMap", cuda.cuMemMap(address, size, 0, handle, 0))
        access = cuda.CUmemAccessDesc()
        access.location = self._property().location
        access.flags = cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        self._check("cuMemSetAccess", cuda.cuMemSetAccess(address, size, [access], 1))
        return handle

    def unmap(self, address: int, size: int, handle: Any, reserved: int, width: int) -> None:
        """Take a mapping away, with the range it lies in."""
        self._check("cuMemUnmap", self._cuda.cuMemUnmap(address, size))
        self._check("cuMemRelease", self._cuda.cuMemRelease(handle))
        self._check("cuMemAddressFree", self._cuda.cuMemAddressFree(reserved, width))

    def to_device(self, address: int, host: int, size: int, stream: int = 0) -> None:
        """Copy from the host on a stream. The host's bytes stay as they are until it is waited for:
        where the device reads pageable memory itself, they are read when the copy executes."""
        copied = self._cuda.cuMemcpyHtoDAsync(address, host, size, stream)
        self._check("cuMemcpyHtoDAsync", copied)

    def to_host(self, host: int, address: int, size: int) -> None:
        """Copy to the host, at once: only what was waited for before is sure to be in it."""
        self._check("cuMemcpyDtoH", self._cuda.cuMemcpyDtoH(host, address, size))

    def can_allocate(self, size: int) -> bool:
        """Whether the device gives `size` bytes at once; they are given back."""
        result, *rest = self._cuda.cuMemAlloc(size)
        if int(result) == OUT_OF_MEMORY:
            return False
        address = self._check("cuMemAlloc", (result, *rest))
        self._check("cuMemFree", self._cuda.cuMemFree(address))
        return True

    # --- kernels -------------------------------------------------------------------------------

    def function(self, image: bytes, entry: str, shared: int) -> Any:
        """A kernel of a cubin or of PTX (ended by a zero), with line numbers; shared: bytes of
        dynamic shared memory that it is launched with."""
        cuda = self._cuda
        text = ctypes.create_string_buffer(image, len(image) + 1)
        options = [cuda.CUjit_option.CU_JIT_GENERATE_LINE_INFO]
        module = self._check(
            "cuModuleLoadDataEx",
            cuda.cuModuleLoadDataEx(ctypes.addressof(text), 1, options, [1]),
        )
        name = entry.encode()
        found = self._check("cuModuleGetFunction", cuda.cuModuleGetFunction(module, name))
        if shared > STATIC_SHARED:
            attribute = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._check("cuFuncSetAttribute", cuda.cuFuncSetAttribute(found, attribute, shared))
        return found

    def launch(
        self,
        function: Any,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        arguments: Sequence[tuple[int | float, Any]],
        stream: int = 0,
    ) -> None:
        """Launch on a stream. arguments: (value, ctypes type), in device order."""
        values = tuple(value for value, _ in arguments)
        types = tuple(kind for _, kind in arguments)
        given = (values, types)
        done = self._cuda.cuLaunchKernel(function, *grid, *block, shared, stream, given, 0)
        self._check("cuLaunchKernel", done)

    def synchronize(self) -> None:
        """Wait for all that was launched; CudaError where some of it failed."""
        self._check("cuCtxSynchronize", self._cuda.cuCtxSynchronize())

    # --- streams, events, graphs ---------------------------------------------------------------

    def stream(self) -> int:
        """A new stream that the default stream does not wait for, nor it for that one."""
        flag = self._cuda.CUstream_flags.CU_STREAM_NON_BLOCKING
        return int(self._check("cuStreamCreate", self._cuda.cuStreamCreate(flag)))

    def event(self) -> int:
        """A new event, without times."""
        flag = self._cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING
        return int(self._check("cuEventCreate", self._cuda.cuEventCreate(flag)))

    def record(self, event: int, stream: int) -> None:
        """Mark this point of a stream."""
        self._check("cuEventRecord", self._cuda.cuEventRecord(event, stream))

    def follow(self, stream: int, event: int) -> None:
        """Let what is asked of a stream from now on wait for an event as it is recorded now."""
        self._check("cuStreamWaitEvent", self._cuda.cuStreamWaitEvent(stream, event, 0))

    def wait_for(self, event: int) -> None:
        """Let the host wait for an event; CudaError where what it waits for failed."""
        self._check("cuEventSynchronize", self._cuda.cuEventSynchronize(event))

    def begin_capture(self, stream: int) -> None:
        """Keep what is asked of a stream from now on instead of executing it."""
        mode = self._cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL  # as torch's own
        self._check("cuStreamBeginCapture", self._cuda.cuStreamBeginCapture(stream, mode))

    def end_capture(self, stream: int) -> Any:
        """What was kept, as a graph that can be launched."""
        graph = self._check("cuStreamEndCapture", self._cuda.cuStreamEndCapture(stream))
        return self._check("cuGraphInstantiate", self._cuda.cuGraphInstantiate(graph, 0))

    def launch_graph(self, graph: Any, stream: int) -> None:
        """Run a graph once, on a stream."""
        self._check("cuGraphLaunch", self._cuda.cuGraphLaunch(graph, stream))

    # -------------------------------------------------------------------------------------------

    def _property(self) -> Any:
        cuda = self._cuda
        wanted = cuda.CUmemAllocationProp()
        wanted.type = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        wanted.location.id = int(self.device)
        return wanted

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._cuda.CUdevice_attribute, name)
        call = self._cuda.cuDeviceGetAttribute
        return int(self._check("cuDeviceGetAttribute", call(attribute, self.device)))

    def _check(self, call: str, returned: tuple[Any, ...]) -> Any:
        """What a call gives besides its result. CudaError unless that is success."""
        result, *rest = returned
        if int(result):
            raise CudaError(call, int(result), getattr(result, "name", "an unknown error"))
        return rest[0] if rest else None


def _bindings() -> ModuleType:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise LaneError("cuda-bindings is not installed", hint=INSTALL) from error
    try:
        driver.cuDriverGetVersion()
    except Exception as error:  # the bindings raise what their loader raises, of several kinds
        raise LaneError(f"no CUDA driver: {error}") from error
    bindings: ModuleType = driver
    return bindings
