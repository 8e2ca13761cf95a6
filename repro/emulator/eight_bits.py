"""Floats of eight bits: e4m3 (no infinities) and e5m2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .dtypes import F32, F64, Array


@dataclass(frozen=True, slots=True, eq=False)
class Small:
    """values: float32[256], by code. finite: how many of the positive codes are finite.

    middles: float64, between each of those and the next.
    """

    values: Array
    finite: int
    middles: Array
    infinity: int | None

    def decode(self, codes: Array) -> Array:
        """float32 of uint8."""
        found: Array = self.values[codes]
        return found

    def encode(self, value: Array, *, saturate: bool) -> Array:
        """uint8: to nearest, ties to even. saturate: what is too large becomes the largest finite.

        NaN is 0x7F.
        """
        size = np.abs(value.astype(F64))
        code = np.searchsorted(self.middles, size, side="left")
        tie = np.take(self.middles, code, mode="clip") == size
        code = code + (tie & (code % 2 == 1))
        too_large = code >= self.finite
        if saturate:
            code = np.minimum(code, self.finite - 1)
        else:
            top = 0x7F if self.infinity is None else self.infinity
            code = np.where(too_large, top, code)
        code = code | (np.signbit(value).astype(np.int64) << 7)
        return np.where(np.isnan(value), 0x7F, code).astype(np.uint8)


def _small(mantissa: int, bias: int, finite: int, infinity: int | None) -> Small:
    codes = np.arange(128)
    exponent, fraction = codes >> mantissa, codes & ((1 << mantissa) - 1)
    scale = 2.0 ** (np.maximum(exponent, 1) - bias - mantissa)
    positive = (fraction + (exponent > 0) * (1 << mantissa)) * scale
    middles = (positive[:finite] + positive[1 : finite + 1]) / 2
    positive[finite:] = np.nan
    if infinity is not None:
        positive[infinity] = np.inf
    values = np.concatenate([positive, -positive]).astype(F32)
    return Small(values, finite, middles, infinity)


EIGHT_BITS = {
    "e4m3": _small(3, 7, 0x7F, None),
    "e5m2": _small(2, 15, 0x7C, 0x7C),
}
