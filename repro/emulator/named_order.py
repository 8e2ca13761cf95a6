"""What barriers of some threads of a block make known: warps of what other warps did.

Such barriers count whole warps. Who waits knows what those who came did before they came, and what
those knew then.
"""

from __future__ import annotations

import numpy as np

from .distinct import distinct
from .dtypes import Array
from .geometry import WARP, Geometry


class NamedOrder:
    """Up to when each warp of a block knows what each other warp did."""

    def __init__(self, geometry: Geometry) -> None:
        self.padded = geometry.padded
        self.warps = geometry.padded // WARP
        self.known = np.zeros((geometry.count, self.warps, self.warps), np.int64)
        # By barrier, what each warp that came without waiting knew when it came.
        self.come: dict[int, Array] = {}

    def known_to(self, lanes: Array, others: Array) -> Array:
        """Until when the threads `lanes` know what `others` of their blocks did."""
        row, thread = np.divmod(lanes, self.padded)
        found: Array = self.known[row, thread // WARP, others % self.padded // WARP]
        return found

    def arrive(self, mask: Array, number: int, time: int) -> None:
        """Threads `mask` come to a barrier at `time` and go on."""
        row, warp = self._warps(mask)
        if number not in self.come:
            self.come[number] = np.zeros_like(self.known)
        self.come[number][row, warp] = self.known[row, warp]
        self.come[number][row, warp, warp] = time

    def gather(self, mask: Array, number: int, time: int) -> None:
        """Threads `mask` pass a barrier at `time`, together with those that came before."""
        row, warp = self._warps(mask)
        self.known[row, warp, warp] = time
        blocks = distinct(row)
        for block in blocks:
            here = warp[row == block]
            all_know = self.known[block, here].max(axis=0)
            if number in self.come:
                all_know = np.maximum(all_know, self.come[number][block].max(axis=0))
                self.come[number][block] = 0
            self.known[block, here] = all_know

    def _warps(self, mask: Array) -> tuple[Array, Array]:
        row, warp = np.nonzero(mask.reshape(-1, self.warps, WARP).any(axis=2))
        return row, warp
