"""Copies that go on while their thread does: cp.async.

The source is read when the copy is issued; what was read lands in shared memory when the thread
waits for the copy's group, which is the latest that a device may do it. Who looks earlier finds
what was there before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .dtypes import Array
from .site import Site


class Copy(NamedTuple):
    """Copies of one instruction that have not landed: one a lane in `lanes`.

    site, addresses: of where they land. values: [lanes, elements] as the site has them. groups: for
    each, how many groups its thread had committed when it was issued.
    """

    site: Site
    addresses: Array
    lanes: Array
    values: Array
    groups: Array

    def chosen(self, which: Array) -> Copy:
        """Those for which `which` holds."""
        return Copy(
            self.site,
            self.addresses[which],
            self.lanes[which],
            self.values[which],
            self.groups[which],
        )


class Copies:
    """The copies of a batch. lanes: its size."""

    def __init__(self, lanes: int) -> None:
        self.pending: list[Copy] = []
        self.committed = np.zeros(lanes, np.int64)

    def issue(self, site: Site, addresses: Array, lanes: Array, values: Array) -> None:
        """Begin copies; they belong to the group that each thread commits next."""
        self.pending.append(Copy(site, addresses, lanes, values, self.committed[lanes]))

    def commit(self, mask: Array | None) -> None:
        """The threads in `mask` (None: all) close their groups."""
        self.committed = self.committed + (1 if mask is None else mask)

    def take(self, mask: Array | None, keep: int | None) -> list[Copy]:
        """Take out what must have landed once the threads in `mask` (None: all) have waited.

        keep: how many of the last committed groups may go on; None: none, nor what is in no group.
        """
        ready, left = [], []
        for copy in self.pending:
            if keep is None:
                which = np.ones(copy.lanes.size, np.bool_)
            else:
                which = copy.groups < self.committed[copy.lanes] - keep
            if mask is not None:
                which = which & mask[copy.lanes]
            if which.all():
                ready.append(copy)
                continue
            left.append(copy)
            if which.any():
                ready.append(copy.chosen(which))
                left[-1] = copy.chosen(~which)
        self.pending = left
        return ready
