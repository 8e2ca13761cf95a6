"""Memory of a device as a DLPack capsule, so that torch makes a tensor that lies on it.

The layout is DLPack's own: `DLManagedTensor` of ATen/dlpack.h as torch 2.13.0 ships it, the form
without a version, which `torch.utils.dlpack.from_dlpack` takes as a capsule named "dltensor"
(torch/utils/dlpack.py and DLPackTraits in ATen/DLConvertor.h of that release). A capsule, not an
object with `__dlpack__`: then torch asks nobody for a stream.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

CPU, CUDA = 1, 2  # DLDeviceType
CODES = {"i": 0, "u": 1, "f": 2}  # numpy's kind → DLDataTypeCode
CAPSULE = b"dltensor"


class _Tensor(ctypes.Structure):
    """DLTensor: DLDevice and DLDataType are its fields `device*` and `code`, `bits`, `lanes`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),  # the array it is made of lives as long as it
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """DLManagedTensor. Its deleter is null, which the format allows: a consumer reads it until its
    tensor is gone, so whoever made it keeps it as long."""

    _fields_ = (
        ("tensor", _Tensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


def managed(address: int, size: int, dtype: np.dtype[Any], device: tuple[int, int]) -> Managed:
    """`size` elements from `address` on, one after the other; device: its type and number.

    ValueError for a dtype that is neither an integer nor a float.
    """
    if dtype.kind not in CODES:
        raise ValueError(f"{dtype} has no form in DLPack")
    return Managed(
        _Tensor(
            address,
            *device,
            1,
            CODES[dtype.kind],
            dtype.itemsize * 8,
            1,
            (ctypes.c_int64 * 1)(size),
            (ctypes.c_int64 * 1)(1),
            0,
        ),
    )


def capsule(of: Managed) -> Any:
    """The capsule that a consumer takes; `of` must outlive what it makes of it."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.addressof(of), CAPSULE, None)
