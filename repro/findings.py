"""From sets of wrong elements to findings. Pure; knows nothing of how an access was checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def ranges(elements: ArrayLike) -> list[tuple[int, int]]:
    """Contiguous ranges (first, last) of a set of element numbers, ascending."""
    import numpy as np

    ordered = np.unique(np.asarray(elements))
    if ordered.size == 0:
        return []
    breaks = np.flatnonzero(np.diff(ordered) != 1)
    firsts = ordered[np.concatenate([[0], breaks + 1])]
    lasts = ordered[np.concatenate([breaks, [ordered.size - 1]])]
    return [(int(a), int(b)) for a, b in zip(firsts, lasts, strict=True)]


def bytes_past_end(first: int, size: int, itemsize: int) -> int | None:
    """Distance of element `first` from the first byte past the end; None before that."""
    return (first - size) * itemsize if first >= size else None
