"""Atomic updates: every lane sees what the lanes before it left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import Array
from .float_formats import FORMATS
from .rounding import flush

_INTEGERS = ("s32", "u32", "s64", "u64")
_BITS = ("b32", "b64")

# (operation, type) as PTX allows them.
UPDATES = frozenset(
    [(name, kind) for name in ("min", "max") for kind in _INTEGERS]
    + [("add", kind) for kind in (*_INTEGERS, "f32", "f64", "f16", "bf16", "f16x2", "bf16x2")]
    + [(name, kind) for name in ("and", "or", "xor", "exch") for kind in _BITS]
    + [("cas", kind) for kind in (*_BITS, "b16", *_INTEGERS)]
    + [("exch", kind) for kind in _INTEGERS]
    + [(name, "u32") for name in ("inc", "dec")]
)


def _increment(old: Array, bound: Array) -> Array:
    return np.where(old >= bound, 0, old + np.uint32(1)).astype(np.uint32)


def _decrement(old: Array, bound: Array) -> Array:
    return np.where((old == 0) | (old > bound), bound, old - np.uint32(1)).astype(np.uint32)


_NEW: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda _old, new: new,
    "cas": lambda old, compare, new: np.where(old == compare, new, old),
    "inc": _increment,
    "dec": _decrement,
}


def _flushing(a: Array, b: Array) -> Array:
    return flush(flush(a) + flush(b))


def function_of(name: str, kind: str, *, flushes: bool) -> Callable[..., Any]:
    """The new value of the old one and the operands. flushes: subnormal float32 count as zero."""
    if name == "add" and kind == "f32" and flushes:
        return _flushing
    return FORMATS[kind].around(_NEW[name]) if kind in FORMATS else _NEW[name]


def update(function: Callable[..., Any], records: Array, at: Array, values: list[Array]) -> Array:
    """Apply `function` to records[at] in the order of the accesses; what each found there.

    Accesses to one place follow each other: the first of each place together, then the second...
    """
    order = np.argsort(at, kind="stable")
    places = at[order]
    begins = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
    lengths = np.diff(np.append(begins, places.size))
    found = np.empty(at.size, records.dtype)
    if function is np.add and records.dtype.kind in "iu":
        return _sums(records, places, order, begins, lengths, values[0])
    for turn in range(int(lengths.max())):
        now = order[begins[lengths > turn] + turn]
        found[now] = records[at[now]]
        records[at[now]] = function(found[now], *(value[now] for value in values))
    return found


def _sums(
    records: Array, places: Array, order: Array, begins: Array, lengths: Array, values: Array
) -> Array:
    """Integer addition at once: what each access finds is a running sum."""
    sorted_values = values[order]
    running = np.cumsum(sorted_values, dtype=records.dtype)
    before = running - sorted_values
    base = np.repeat(records[places[begins]] - before[begins], lengths)
    found = np.empty(places.size, records.dtype)
    found[order] = base + before
    ends = begins + lengths - 1
    records[places[begins]] = (base + running)[ends]
    return found
