"""A launch of which only the findings are wanted, decided without executing its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .. import checks as checking
from ..geometry import geometry
from ..program import Program
from ..ptx import Kernel
from ..report import Recorder
from ..storage import TAG_BITS, Storage
from .accesses import Accesses
from .marking import mark
from .memo import Shape, memo
from .traces import trace
from .walk import UndecidedError


class Decided(NamedTuple):
    """steps: how many were gone through. unmarked: buffers of which it is not marked what is
    written, for it is too much."""

    steps: int
    unmarked: tuple[str, ...]


def decided(
    kernel: Kernel,
    program: Program,
    shape: Shape,
    arguments: tuple[Sequence[Storage], Sequence[bytes]],
    recorder: Recorder,
    *,
    marks: bool = False,
) -> Decided | None:
    """Record in `recorder` what every block of a launch does wrong.

    shape: grid, block, bytes of dynamic shared memory. None where it cannot be told without
    executing it; `recorder` then holds what it may. What buffers hold is not looked at, and not
    changed. marks: whether to mark what is written as such.
    """
    grid, block, _ = shape
    storages, bits = arguments
    known = memo(kernel, shape)
    traced = trace(kernel, program.sites, shape, bits, known)
    if traced is None:
        return None
    by_tag = {storage.base >> TAG_BITS: storage for storage in storages}
    looking = Accesses(
        recorder,
        block,
        known,
        initialised=checking.INITIALISED in recorder.checks,
        owners=recorder.requests is not None and checking.OWNERSHIP in recorder.checks,
    )
    races = checking.GLOBAL_RACE in recorder.checks and grid != (1, 1, 1)
    try:
        for tag, touched in traced.touched.items():
            if tag not in by_tag or (races and not touched.apart):
                return None
            looking.look(touched, by_tag[tag])
    except UndecidedError:
        return None
    unmarked: list[str] = []
    if marks:
        lanes = geometry(0, 1, block, grid).padded
        for tag, touched in traced.touched.items():
            if touched.written and not mark(touched, by_tag[tag], grid, lanes):
                unmarked.append(by_tag[tag].name)
    return Decided(traced.steps, tuple(unmarked))
