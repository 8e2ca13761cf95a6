"""A launch of which only the findings are wanted, decided without executing its blocks."""

from __future__ import annotations

from collections.abc import Sequence

from .. import checks as checking
from ..program import Program
from ..ptx import Kernel
from ..report import Recorder
from ..storage import TAG_BITS, Storage
from .accesses import Accesses
from .memo import Shape, memo
from .traces import trace
from .walk import UndecidedError


def decided(
    kernel: Kernel,
    program: Program,
    shape: Shape,
    arguments: tuple[Sequence[Storage], Sequence[bytes]],
    recorder: Recorder,
) -> int | None:
    """Record in `recorder` what every block of a launch does wrong; how many steps that took.

    shape: grid, block, bytes of dynamic shared memory. None where it cannot be told without
    executing it; `recorder` then holds what it may. What buffers hold is not looked at, and not
    changed.
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
    return traced.steps
