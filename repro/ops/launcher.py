"""Where the methods of the ops end: a numbered launch on the lane's device."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .launch import Argument, Device, Launch


class Launcher:
    """Numbers the launches of a trial. `step` labels those that follow."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.step: int | None = None
        self.launches = 0

    def _launch(
        self,
        op: str,
        grid: tuple[int, int, int],
        requests: ArrayLike | None,
        **args: Argument,
    ) -> None:
        if min(grid) == 0:  # an empty batch launches nothing, as a framework would
            return
        rows = None if requests is None else np.asarray(requests, np.int32)
        if rows is not None and rows.shape != (grid[0],):
            raise ValueError(f"{op}: {grid[0]} rows, but requests for {rows.shape}")
        self.device.launch(Launch(self.number(), op, args, grid, rows, self.step))

    def number(self) -> int:
        """The number of the next launch of this trial; a replayed graph takes one a launch."""
        taken, self.launches = self.launches, self.launches + 1
        return taken
