"""The memory of one launch: buffers filled as the argument file says, and where each one lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..emulator.storage import ADDRESS_BITS, MIDDLE, TAG_BITS
from ..errors import CaseError
from .arguments import Arguments, BufferSpec, View
from .element_types import TYPES, ElementType

Array = NDArray[Any]
ALIGNMENT = 256  # bytes, as a device allocator gives
POISON = 0xAA  # of bytes that nobody has written
MAX_HEADER = 10_000  # characters of the header of a .npy file


@dataclass(frozen=True, slots=True)
class Filled:
    """A buffer as it goes into a launch. data: flat, changed in place by the launch.

    written: bool[bytes], False where nobody has written; None: all of it is written.
    """

    spec: BufferSpec
    data: Array
    written: NDArray[np.bool_] | None


def aligned(size: int, dtype: np.dtype[Any]) -> Array:
    """A flat array of `size` elements of zero that starts at a multiple of ALIGNMENT."""
    raw = np.zeros(size * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size * dtype.itemsize].view(dtype)


def filled(arguments: Arguments) -> list[Filled]:
    """The buffers of an argument file, in its order, pointers not yet in place.

    CaseError where a .npy file does not hold what the file says of it.
    """
    return [_filled(arguments, spec) for spec in arguments.buffers]


def base_address(number: int, data: Array) -> int:
    """The address a launch gives to its `number`th buffer, counted from 0."""
    start: int = data.__array_interface__["data"][0]
    return ((number + 1) << TAG_BITS) + MIDDLE + (start & ADDRESS_BITS)


def place_pointers(buffers: Sequence[Filled], addresses: Mapping[str, int]) -> None:
    """Write the addresses that buffers of pointers hold. addresses: of each buffer's first byte."""
    sizes = {each.spec.name: each.data.dtype.itemsize for each in buffers}
    for each in buffers:
        words = each.data.view(np.uint64) if each.data.dtype.itemsize == 8 else each.data
        for element, value in enumerate(each.spec.fill.values):
            if isinstance(value, View):
                words[element] = pointer(value, addresses, sizes)


def pointer(view: View, addresses: Mapping[str, int], sizes: Mapping[str, int]) -> int:
    """The address of a view. sizes: bytes of an element of each buffer."""
    return addresses[view.buffer] + view.offset * sizes[view.buffer]


def _filled(arguments: Arguments, spec: BufferSpec) -> Filled:
    dtype = TYPES[spec.dtype]
    data = aligned(spec.size, np.dtype(dtype.numpy))
    fill, written = spec.fill, None
    if fill.kind == "arange":
        data[:] = encode(np.arange(spec.size), dtype)
    elif fill.kind == "random":
        data[:] = encode(_random(spec, dtype), dtype)
    elif fill.kind == "values":
        numbers = [0 if isinstance(value, View) else value for value in fill.values]
        data[:] = encode(np.array(numbers, np.float64), dtype) if dtype.kind == "f" else numbers
    elif fill.kind == "file":
        data[:] = _from_file(arguments, spec, dtype)
    elif fill.kind == "uninitialised":
        data.view(np.uint8)[:] = POISON
        written = np.zeros(data.nbytes, np.bool_)
    return Filled(spec, data, written)


def _random(spec: BufferSpec, dtype: ElementType) -> Array:
    fill = spec.fill
    generator = np.random.default_rng(fill.seed)
    if dtype.kind == "f":
        return generator.uniform(fill.low or 0.0, fill.high or 0.0, spec.size)
    return generator.integers(int(fill.low or 0), int(fill.high or 0), spec.size, np.int64)


def _from_file(arguments: Arguments, spec: BufferSpec, dtype: ElementType) -> Array:
    place = (*spec.place, "fill", "file")
    path = spec.fill.file or Path()
    try:
        values = np.load(path, allow_pickle=False, max_header_size=MAX_HEADER, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise arguments.refusal(place, f"cannot be read as .npy: {error}") from error
    if values.dtype != np.dtype(dtype.numpy) or values.size != spec.size:
        raise _differs(arguments, spec, values)
    return np.ascontiguousarray(values).reshape(-1)


def _differs(arguments: Arguments, spec: BufferSpec, values: Array) -> CaseError:
    return arguments.refusal(
        (*spec.place, "fill", "file"),
        f"holds {values.dtype}{list(values.shape)}, not {spec.dtype}{list(spec.shape)}",
        "float types that numpy lacks are kept as unsigned words of their bits",
    )


def encode(values: Array, dtype: ElementType) -> Array:
    """`values` as elements of `dtype`: floats rounded to nearest, ties to even."""
    if not dtype.raw:
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(np.dtype(dtype.numpy))
    return _encode_float(np.asarray(values, np.float64), dtype)


def _encode_float(values: Array, dtype: ElementType) -> Array:
    """IEEE-like bits with dtype.exponent and dtype.mantissa bits; f8e4m3 has NaN and no infinity.

    OCP 8-bit Floating Point Specification 1.0; bf16 is the upper half of a float32.
    """
    mantissa = dtype.mantissa
    bias = (1 << (dtype.exponent - 1)) - 1
    least = 1 - bias
    top = (1 << dtype.exponent) - 1  # the exponent field of infinity and NaN
    finite = np.isfinite(values)
    size = np.where(finite, np.abs(values), 0.0)
    exponent = np.maximum(np.frexp(size)[1] - 1, least)
    units = np.rint(np.ldexp(size, mantissa - exponent)).astype(np.int64)
    carried = units >> (mantissa + 1)  # rounding up may reach the next power of two
    units, exponent = units >> carried, exponent + carried
    normal = units >> mantissa
    bits = np.where(
        normal > 0, ((exponent + bias) << mantissa) + units - (1 << mantissa), units
    ).astype(np.int64)
    infinity = top << mantissa
    if dtype.name == "f8e4m3":
        bits = np.where(finite & (bits < infinity + (1 << mantissa) - 1), bits, 0x7F)
    else:
        bits = np.where(finite & (bits < infinity), bits, infinity)
        bits = np.where(np.isnan(values), infinity | (1 << (mantissa - 1)), bits)
    sign = np.signbit(values).astype(np.int64) << (8 * dtype.size - 1)
    words: Array = (bits | sign).astype(np.dtype(dtype.numpy))
    return words
