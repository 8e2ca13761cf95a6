"""The closures that programs are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import DType
from .program import File, Make, Op


def apply1(function: Callable[..., Any], a: int) -> Make:
    """d = function(a)"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = function(file[a])

        return run

    return make


def apply2(function: Callable[..., Any], a: int, b: int) -> Make:
    """d = function(a, b)"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = function(file[a], file[b])

        return run

    return make


def apply3(function: Callable[..., Any], a: int, b: int, c: int) -> Make:
    """d = function(a, b, c)"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = function(file[a], file[b], file[c])

        return run

    return make


def copy(a: int) -> Make:
    """d = a"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = file[a]

        return run

    return make


def view(a: int, dtype: DType) -> Make:
    """d = the bits of a as dtype"""

    def make(d: int) -> Op:
        def run(file: File) -> None:
            file[d] = file[a].view(dtype)

        return run

    return make


def select(p: int, a: int, b: int) -> Make:
    """d = a where p else b"""
    return apply3(np.where, p, a, b)


def cast_unsigned(a: int, dtype: DType) -> Make:
    """d = the unsigned value of 32-bit a as dtype"""
    return apply1(lambda value: value.view(np.uint32).astype(dtype), a)
