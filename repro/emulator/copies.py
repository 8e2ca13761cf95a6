"""Copies that go on while their thread does: cp.async.

The source is read when the copy is issued; what was read lands in shared memory when the thread
waits for the copy's group, which is the latest that a device may do it. Who looks earlier finds
what was there before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .dtypes import Array
from .sites import Site


class Copy(NamedTuple):
    """Copies of one instruction that have not landed: one a lane in `lanes`.

    site, addresses: of where they land. values: [lanes, elements] as the site has them. groups: for
    each, how many groups its thread had committed when it was issued. marks: uint8[lanes, bytes],
    which bytes of the source were written; None: all.
    """

    site: Site
    addresses: Array
    lanes: Array
    values: Array
    groups: Array
    marks: Array | None = None

    def chosen(self, which: Array) -> Copy:
        """Those for which `which` holds."""
        return Copy(
            self.site,
            self.addresses[which],
            self.lanes[which],
            self.values[which],
            self.groups[which],
            None if self.marks is None else self.marks[which],
        )

    def spread(self, lanes: int) -> tuple[Array, ...]:
        """The values of each element, one a lane of a batch of `lanes`."""
        found = np.zeros((self.values.shape[1], lanes), self.values.dtype)
        found[:, self.lanes] = self.values.T
        return tuple(found)


class Copies:
    """The copies of a batch. lanes: its size."""

    def __init__(self, lanes: int) -> None:
        self.pending: list[Copy] = []
        self.committed = np.zeros(lanes, np.int64)

    def issue(
        self, site: Site, addresses: Array, lanes: Array, values: Array, marks: Array | None
    ) -> Copy:
        """Begin copies; they belong to the group that each thread commits next."""
        copy = Copy(site, addresses, lanes, values, self.committed[lanes], marks)
        self.pending.append(copy)
        return copy

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
