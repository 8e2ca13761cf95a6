"""The planted faults as references: those that are wrong by an element, not by a thread."""

from __future__ import annotations

import numpy as np

from ..ops import Tensor
from .faults import THREADS

ALL = np.arange(THREADS)


def clean(out: Tensor, read: Tensor, *, rows: int) -> None:
    """Every element of `out` takes that of `read` from the other end."""
    for row in range(rows):
        out.store(ALL, read.load(THREADS - 1 - ALL, row=row), row=row)


def far_write(out: Tensor, distance: int, *, rows: int) -> None:
    for row in range(rows):
        out.store(distance + ALL, 1, row=row)


def far_read(out: Tensor, read: Tensor, distance: int, *, rows: int) -> None:
    for row in range(rows):
        out.store(ALL, read.load(distance + ALL, row=row), row=row)


def next_write(out: Tensor, distance: int, *, rows: int) -> None:
    for row in range(rows):
        out.store(distance + ALL, 1, row=row)


def pool_write(pool: Tensor, first: int, *, rows: int) -> None:
    for row in range(rows):
        pool.store(first + ALL, 1, row=row)


PROGRAMS = {
    program.__name__: program for program in (clean, far_write, far_read, next_write, pool_write)
}
