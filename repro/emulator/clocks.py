"""Special registers that tell time: counters that only ever rise, with no other meaning.

Each reading is later than all before it, whichever thread of the launch reads and whatever lies
between, so that a kernel that waits for some time to pass ends.
"""

from __future__ import annotations

import numpy as np

from .dtypes import SIGNED, DType
from .program import MEMORY, File, Make, Op

STEP = 1 << 10  # cycles, nanoseconds: by how much a reading is later than the one before
# Name -> dtype of its bits, and the number of the counter's first bit that it gives.
CLOCKS: dict[str, tuple[DType, int]] = {
    "%clock": (SIGNED[4], 0),
    "%clock_hi": (SIGNED[4], 32),
    "%clock64": (SIGNED[8], 0),
    "%globaltimer": (SIGNED[8], 0),
    "%globaltimer_lo": (SIGNED[4], 0),
    "%globaltimer_hi": (SIGNED[4], 32),
}


def reading(name: str) -> Make:
    """d = the counter, the same for all threads that read it together"""
    dtype, first = CLOCKS[name]
    mask = (1 << 8 * dtype.itemsize) - 1

    def make(d: int) -> Op:
        def run(file: File) -> None:
            recorder = file[MEMORY].recorder
            recorder.time += STEP
            bits = recorder.time >> first & mask
            file[d] = np.array([bits], f"u{dtype.itemsize}").view(dtype)

        return run

    return make
