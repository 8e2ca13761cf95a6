"""The distinct values of an array.

numpy.unique does the same for more kinds of array; its first call imports numpy.ma, which takes
longer than a small launch, and each call costs a small launch's share of a finding.
"""

from __future__ import annotations

import numpy as np

from .dtypes import Array


def distinct(values: Array) -> Array:
    """Integers of any shape: each of them once, in ascending order, flat."""
    ordered = values.flatten()
    if ordered.size < 2:
        return ordered
    ordered.sort()
    first = np.empty(ordered.size, np.bool_)
    first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered if np.logical_and.reduce(first) else ordered[first]


def numbered(values: Array) -> tuple[Array, Array]:
    """`distinct`, and for each of the values which of them it is."""
    found = distinct(values)
    return found, np.searchsorted(found, values)
