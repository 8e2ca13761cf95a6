"""How the float types of PTX lie in registers, and what they are computed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dtypes import F16, F32, F64, UNSIGNED, Array, DType
from .rounding import from_bf16, to_bf16

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Format:
    """dtype: of the register. decode: its values as numpy floats; encode: back, rounded once."""

    dtype: DType
    decode: Callable[[Array], Array] | None = None
    encode: Callable[[Array], Array] | None = None

    def around(self, function: Function, *, encode: bool = True) -> Function:
        """`function` on decoded values, as one on registers. encode: its result is of this format,
        else left as it is.
        """
        before, after = self.decode, self.encode if encode else None
        if before is None and after is None:
            return function

        def wrapped(*values: Array) -> Any:
            result = function(*(before(value) if before else value for value in values))
            return after(result) if after else result

        return wrapped


def _halves(pair: Array) -> Array:
    return np.ascontiguousarray(pair).view(np.uint16).reshape(-1, 2)


def _joined(halves: Array) -> Array:
    return np.ascontiguousarray(halves).view(np.uint32).reshape(-1)


def _f16_pair(pair: Array) -> Array:
    return _halves(pair).view(np.float16)


def _bf16_pair(pair: Array) -> Array:
    return from_bf16(_halves(pair))


def _joined_bf16(values: Array) -> Array:
    return _joined(to_bf16(values))


def _f32_pair(pair: Array) -> Array:
    return np.ascontiguousarray(pair).view(np.float32).reshape(-1, 2)


def _joined_f32(values: Array) -> Array:
    return np.ascontiguousarray(values, np.float32).view(np.uint64).reshape(-1)


FORMATS: dict[str, Format] = {
    "f16": Format(F16),
    "f32": Format(F32),
    "f64": Format(F64),
    "bf16": Format(UNSIGNED[2], from_bf16, to_bf16),
    "f16x2": Format(UNSIGNED[4], _f16_pair, _joined),
    "bf16x2": Format(UNSIGNED[4], _bf16_pair, _joined_bf16),
    "f32x2": Format(UNSIGNED[8], _f32_pair, _joined_f32),
}
