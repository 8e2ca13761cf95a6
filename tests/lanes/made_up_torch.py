"""What the GPU lanes and Triton use of torch 2.13.0, over the CUDA driver of this process.

A tensor is a place in memory with a type; streams and graphs are the driver's, as torch's are the
runtime's. Names and signatures are those of torch/cuda/__init__.py, torch/cuda/streams.py,
torch/cuda/graphs.py and torch/utils/dlpack.py. Whatever else is asked for is not here.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any

VERSION = "2.13.0+made.up"


def install() -> None:
    """Make it the torch of this process."""
    whole = {
        "torch": {"__version__": VERSION, "Tensor": Tensor, "dtype": dtype},
        "torch.version": {"cuda": "13.0", "hip": None},
        "torch._C": {"_cuda_getCurrentRawStream": lambda device: _current[-1].cuda_stream},
        "torch.utils": {},
        "torch.utils.dlpack": {"from_dlpack": from_dlpack},
        "torch.cuda": {
            "CUDAGraph": CUDAGraph,
            "ExternalStream": ExternalStream,
            "current_device": lambda: 0,
            "default_stream": lambda device=0: _current[0],
            "get_device_capability": lambda device=0: (9, 0),
            "graph": graph,
            "is_available": lambda: True,
            "set_device": lambda device: None,
            "stream": stream,
        },
    }
    for name, members in whole.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.__path__ = []
        module.__dict__.update(members)
        sys.modules[name] = module
        above, _, own = name.rpartition(".")
        if above:
            setattr(sys.modules[above], own, module)


# --- tensors ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class dtype:
    """A type of elements; Triton reads its name."""

    name: str

    def __str__(self) -> str:
        return f"torch.{self.name}"


@dataclass(frozen=True)
class Tensor:
    """One made by `from_dlpack`."""

    address: int
    shape: tuple[int, ...]
    dtype: dtype
    device: tuple[int, int]

    def data_ptr(self) -> int:
        """Where it begins; 0 for one without elements, as in torch."""
        return self.address if self.shape[0] else 0


KINDS = {0: "int", 1: "uint", 2: "float"}


def from_dlpack(ext_tensor: Any) -> Tensor:
    """The tensor of a capsule, read as the C header of DLPack lays it out on a 64-bit machine."""
    take = ctypes.pythonapi.PyCapsule_GetPointer
    take.restype, take.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    raw = ctypes.string_at(take(ext_tensor, b"dltensor"), 64)
    data, kind, number, ndim, code, bits, lanes = struct.unpack_from("<QiiiBBH", raw)
    shape, strides, offset = struct.unpack_from("<QQQ", raw, 24)
    extent = ctypes.c_int64.from_address(shape).value
    step = ctypes.c_int64.from_address(strides).value
    if (ndim, lanes, offset, step) != (1, 1, 0, 1):
        raise RuntimeError("not a plain vector")
    return Tensor(data, (extent,), dtype(f"{KINDS[code]}{bits}"), (kind, number))


# --- streams and graphs -------------------------------------------------------------------------


def driver(call: str, *arguments: Any) -> None:
    """One call of the driver. RuntimeError, as torch says it, where it fails."""
    code = getattr(ctypes.CDLL("libcuda.so.1"), call)(*arguments)
    if code:
        raise RuntimeError(f"CUDA error {code} from {call}")


class ExternalStream:
    """A stream that another made. cuda_stream: the driver's handle."""

    def __init__(self, stream_ptr: int, device: int | None = None) -> None:
        self.cuda_stream = stream_ptr


_current = [ExternalStream(0)]


@contextmanager
def stream(stream: ExternalStream) -> Iterator[None]:
    _current.append(stream)
    try:
        yield
    finally:
        _current.pop()


class CUDAGraph:
    """A graph, once it was captured."""

    def __init__(self) -> None:
        self.ready = ctypes.c_void_p()

    def replay(self) -> None:
        driver("cuGraphLaunch", self.ready, ctypes.c_void_p(_current[-1].cuda_stream))


class graph:
    """Waits for the device and captures what is put on `stream`, which is current within."""

    def __init__(self, cuda_graph: CUDAGraph, stream: ExternalStream) -> None:
        self.cuda_graph = cuda_graph
        self.handle = ctypes.c_void_p(stream.cuda_stream)
        self.stream = stream

    def __enter__(self) -> None:
        driver("cuCtxSynchronize")
        _current.append(self.stream)
        driver("cuStreamBeginCapture_v2", self.handle, 0)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        captured = ctypes.c_void_p()
        driver("cuStreamEndCapture", self.handle, ctypes.byref(captured))
        ready = ctypes.byref(self.cuda_graph.ready)
        driver("cuGraphInstantiateWithFlags", ready, captured, ctypes.c_ulonglong(0))
        _current.pop()
