"""`from_dlpack`: reads a capsule as the C header of DLPack lays it out, by the offsets of a 64-bit
machine; it knows nothing of the classes that made it."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from ..tensor import Tensor, dtype

KINDS = {0: "int", 1: "uint", 2: "float"}


def from_dlpack(ext_tensor: Any) -> Tensor:
    """The tensor of a capsule, which can be taken once."""
    take = ctypes.pythonapi.PyCapsule_GetPointer
    take.restype, take.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    where = take(ext_tensor, b"dltensor")
    raw = ctypes.string_at(where, 64)
    data, kind, number, ndim, code, bits, lanes = struct.unpack_from("<QiiiBBH", raw)
    shape, strides, offset = struct.unpack_from("<QQQ", raw, 24)
    if (ndim, lanes, offset) != (1, 1, 0):
        raise RuntimeError("not a plain vector")
    extent = ctypes.c_int64.from_address(shape).value
    if ctypes.c_int64.from_address(strides).value != 1:
        raise RuntimeError("not contiguous")
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.restype, rename.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
    rename(ext_tensor, b"used_dltensor")
    return Tensor(data, (extent,), dtype(f"{KINDS[code]}{bits}"), (kind, number))
