"""PTX types as numpy dtypes. bf16 has none: its values are uint16 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DType = np.dtype[Any]

BOOL = np.dtype(np.bool_)
F16, F32, F64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
SIGNED = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}
UNSIGNED = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}

# Type of an instruction -> how its values are seen.
DTYPES: dict[str, DType] = {
    "pred": BOOL,
    **{f"s{8 * n}": dtype for n, dtype in SIGNED.items()},
    **{f"u{8 * n}": dtype for n, dtype in UNSIGNED.items()},
    **{f"b{8 * n}": dtype for n, dtype in UNSIGNED.items()},
    "f16": F16,
    "f32": F32,
    "f64": F64,
    "bf16": UNSIGNED[2],
    "f16x2": UNSIGNED[4],
    "bf16x2": UNSIGNED[4],
    "f32x2": UNSIGNED[8],
    "b128": np.dtype("V16"),  # of registers that are taken apart before anything looks at them
}
FLOATS = frozenset({"f16", "bf16", "f32", "f64", "f16x2", "bf16x2", "f32x2"})


def unsigned(dtype: DType) -> DType:
    """The unsigned dtype of the same size."""
    return UNSIGNED[dtype.itemsize]


def signed(dtype: DType) -> DType:
    """The signed dtype of the same size."""
    return SIGNED[dtype.itemsize]
