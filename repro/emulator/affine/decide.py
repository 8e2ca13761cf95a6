"""A launch of which only the findings are wanted, decided without executing its blocks."""

from __future__ import annotations

from collections.abc import Sequence

from .. import checks as checking
from ..geometry import Triple, geometry
from ..program import Program
from ..ptx import Kernel
from ..report import Recorder
from ..storage import TAG_BITS, Storage
from .accesses import Accesses
from .memo import memo
from .steps import code
from .walk import UndecidedError, Walk


def decided(
    kernel: Kernel,
    program: Program,
    shape: tuple[Triple, Triple, int],
    arguments: tuple[Sequence[Storage], Sequence[bytes]],
    recorder: Recorder,
) -> int | None:
    """Record in `recorder` what every block of a launch does wrong; how many steps that took.

    shape: grid, block, bytes of dynamic shared memory. None where it cannot be told without
    executing it; `recorder` then holds what it may. What buffers hold is not looked at, and not
    changed.
    """
    steps = code(kernel)
    if steps is None:
        return None
    grid, block, shared_bytes = shape
    storages, bits = arguments
    known = memo(kernel, shape)
    looking = Accesses(
        program.sites,
        {storage.base >> TAG_BITS: storage for storage in storages},
        recorder,
        block,
        known,
        initialised=checking.INITIALISED in recorder.checks,
        owners=recorder.requests is not None and checking.OWNERSHIP in recorder.checks,
    )
    walk = Walk(steps, bits, geometry(0, 1, block, grid), shared_bytes, known, looking.look)
    try:
        count = walk.run()
    except UndecidedError:
        return None
    races = checking.GLOBAL_RACE in recorder.checks and grid != (1, 1, 1)
    return count if not races or looking.apart() else None
