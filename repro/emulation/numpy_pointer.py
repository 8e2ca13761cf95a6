"""What a kernel gets as a pointer: numpy arrays and CPU tensors, and the memory behind them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UnsupportedError, UsageError

Array = NDArray[Any]
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class NumpyPointer:
    """A numpy array as Triton wants an argument: with an address and a dtype."""

    __slots__ = ("array", "dtype", "shape")

    def __init__(self, array: Array) -> None:
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape

    def data_ptr(self) -> int:
        return _address(self.array)

    def numel(self) -> int:
        return int(self.array.size)

    def element_size(self) -> int:
        return int(self.array.itemsize)


def wrapped(value: Any) -> Any:
    """A numpy array as a pointer, also within tuples; numpy scalars as plain numbers; all else as
    it is.
    """
    if isinstance(value, tuple):
        inner = map(wrapped, value)
        return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
    if isinstance(value, np.ndarray):
        return NumpyPointer(value)
    if isinstance(value, np.generic) and not isinstance(value, np.void):
        return value.item()
    return value


@dataclass(frozen=True, slots=True)
class Region:
    """The memory of one argument. data: flat, from its first to its last element, live.

    shown: dtype and shape for a reader, and strides in elements where it is not flat, for findings
    count elements by address. elements: its own, without the gaps between them. copy: data is one,
    because the array cannot be written.
    """

    address: int
    data: Array
    shown: str
    elements: int
    copy: bool = False


Storages = dict[tuple[int, int], Array]


def region(name: str, value: Any, storages: Storages) -> Region:
    """The memory behind an argument, UsageError where it is none of this process.

    storages: the allocations of the launch's other tensors, to be filled: the same array for the
    same one, so that what an overrun lands in is known.
    """
    value = getattr(value, "base", value) if hasattr(value, "data_ptr") else value
    if isinstance(value, NumpyPointer):
        return _of_array(name, value.array, storages)
    if not hasattr(value, "untyped_storage"):
        raise UsageError(f"argument {name} is no tensor but {type(value).__name__}")
    return _of_tensor(name, value, storages)


def _of_array(name: str, array: Array, storages: Storages) -> Region:
    item = array.itemsize
    if item not in WORDS or array.dtype.hasobject:
        raise UsageError(f"argument {name}: no kernel takes elements of {array.dtype}")
    if any(stride < 0 or stride % item for stride in array.strides):
        raise UnsupportedError(f"argument {name}: strides {array.strides} of {array.dtype}")
    strides = tuple(stride // item for stride in array.strides)
    span = _span(array.shape, strides)
    if array.dtype.byteorder == ">":
        raise UsageError(f"argument {name}: big-endian elements")
    address = _address(array)
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start, size = _address(root), root.nbytes
    if not start <= address <= address + span * item <= start + size:
        start, size = address, span * item  # a view that makes its own bounds
    memory = storages.setdefault((start, size), _storage(start, size))
    view = array.dtype if array.dtype.kind in "iuf" else np.dtype(WORDS[item])
    flat = memory[address - start : address - start + span * item].view(view)
    shown = _shown(str(array.dtype), array.shape, strides)
    if not array.flags.writeable:
        return Region(address, flat.copy(), shown, array.size, copy=True)
    return Region(address, flat, shown, array.size)


def _of_tensor(name: str, tensor: Any, storages: Storages) -> Region:
    device = str(tensor.device).split(":")[0]
    if device != "cpu":
        raise UsageError(
            f"argument {name} lies on {device}; the emulator works on CPU tensors",
            hint='make it with device="cpu", or leave the device out',
        )
    item, shape = tensor.element_size(), tuple(tensor.shape)
    span = _span(shape, tensor.stride())
    storage = tensor.untyped_storage()
    key = storage.data_ptr(), storage.nbytes()
    memory = storages.setdefault(key, _storage(*key))
    start = tensor.data_ptr() - storage.data_ptr() if span else 0
    dtype = str(tensor.dtype).removeprefix("torch.")
    shown = _shown(dtype, shape, tuple(tensor.stride()))
    try:
        view = np.dtype(dtype)
    except TypeError:
        view = np.dtype(WORDS[item])
    if view.kind not in "iuf":
        view = np.dtype(WORDS[item])
    flat = memory[start : start + span * item].view(view)
    return Region(tensor.data_ptr(), flat, shown, int(tensor.numel()))


def _shown(dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> str:
    text, step = f"{dtype}[{', '.join(map(str, shape))}]", 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != step:
            return f"{text} of strides ({', '.join(map(str, strides))})"
        step *= extent
    return text


def _storage(address: int, size: int) -> Array:
    if not size:
        return np.zeros(0, np.uint8)
    memory: Any = (ctypes.c_uint8 * size).from_address(address)
    bytes_: Array = np.frombuffer(memory, np.uint8)
    return bytes_


def _address(array: Array) -> int:
    start: int = array.__array_interface__["data"][0]
    return start


def _span(shape: tuple[int, ...], strides: Any) -> int:
    """Elements from the first to the last."""
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * int(step) for extent, step in zip(shape, strides, strict=True))
