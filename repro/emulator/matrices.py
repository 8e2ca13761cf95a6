"""Which element of a matrix lies where in the registers of a warp, and the product of two.

PTX ISA, "Matrix multiply-accumulate instructions". With g = lane / 4 and t = lane % 4, register i
of a lane holds, E elements in it, of
  A (16 x K, by rows):     row g + 8 (i % 2), columns t E .. and 4 E (i / 2) further on
  B (K x 8, by columns):   column g, rows t E .. and 4 E i further on
  C and D (16 x 8):        row g + 8 (i / 2), column 2 t + i % 2; of 8 x 8: row g, column 2 t + i
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .dtypes import F32, Array
from .geometry import WARP

_LANES = np.arange(WARP)
_GROUP, _IN_GROUP = _LANES // 4, _LANES % 4


@lru_cache(maxsize=64)
def places_a(rows: int, depth: int, packed: int) -> Array:
    """int64[rows, depth]: of each element of A, the number in [registers, lanes, packed] order."""
    registers = rows * depth // (WARP * packed)
    found = np.empty((rows, depth), np.int64)
    for i in range(registers):
        row_part, column_part = (i % 2, i // 2) if rows == 16 else (0, i)
        for e in range(packed):
            row = _GROUP + 8 * row_part
            column = _IN_GROUP * packed + e + 4 * packed * column_part
            found[row, column] = (i * WARP + _LANES) * packed + e
    return found


@lru_cache(maxsize=64)
def places_b(depth: int, packed: int) -> Array:
    """int64[depth, 8]: the same for B."""
    found = np.empty((depth, 8), np.int64)
    for i in range(depth * 8 // (WARP * packed)):
        for e in range(packed):
            row = _IN_GROUP * packed + e + 4 * packed * i
            found[row, _GROUP] = (i * WARP + _LANES) * packed + e
    return found


@lru_cache(maxsize=64)
def places_c(rows: int) -> Array:
    """int64[rows, 8]: the same for C and D, an element a register."""
    found = np.empty((rows, 8), np.int64)
    for i in range(rows * 8 // WARP):
        found[_GROUP + 8 * (i // 2), 2 * _IN_GROUP + i % 2] = i * WARP + _LANES
    return found


def matrix(elements: Array, places: Array) -> Array:
    """[warps, rows, columns] of elements[registers, warps, lanes, packed]."""
    order: Array = elements.transpose(1, 0, 2, 3).reshape(elements.shape[1], -1)
    return order[:, places]


def spread(values: Array, places: Array) -> Array:
    """[registers, warps * lanes] of values[warps, rows, columns]."""
    warps = len(values)
    flat = np.empty((warps, places.size), values.dtype)
    flat[:, places.reshape(-1)] = values.reshape(warps, -1)
    result: Array = flat.reshape(warps, -1, WARP).transpose(1, 0, 2).reshape(-1, warps * WARP)
    return result


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """c + a b, for each warp, in the dtype of c.

    The products are exact where the dtype of c is float32 and the elements have 12 bits at most.
    Their sum begins with c and takes them in order of the depth, each addition rounded to nearest:
    a device adds several at once, in an order and precision of its own.
    """
    dtype = c.dtype
    depth = a.shape[2]
    terms = np.empty((depth + 1, *c.shape), dtype)
    terms[0] = c
    left = a.transpose(2, 0, 1)[:, :, :, None].astype(dtype)
    right = b.transpose(1, 0, 2)[:, :, None, :].astype(dtype)
    np.multiply(left, right, out=terms[1:])
    result: Array = np.add.reduce(terms, axis=0)  # one row of terms after the other
    return result


def truncated_tf32(bits: Array) -> Array:
    """float32 of the bits (uint32) of tf32 operands: the lower 13 bits do not count."""
    cut: Array = (bits & np.uint32(0xFFFFE000)).view(F32)
    return cut
