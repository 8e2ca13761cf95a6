"""All accesses of a launch, as its arguments alone decide them; kept for those with the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..geometry import geometry
from ..ptx import Kernel
from ..sites import Site
from ..storage import TAG_BITS
from .apart import Footprint, apart
from .memo import Memo, Shape
from .reach import Reach
from .steps import Step, code
from .value import Value
from .walk import UndecidedError, Walk
from .where import Where

MOST_KEPT = 1 << 9  # accesses of one
MOST_TRACES = 1 << 5  # of one kernel, grid and block


class Access(NamedTuple):
    """Every thread in `where` touches `site.width` bytes at base + at + by · block of `address`."""

    site: Site
    address: Value
    where: Where
    base: int
    reach: Reach

    @property
    def first(self) -> int:
        """The least address."""
        return self.base + self.reach.first

    @property
    def last(self) -> int:
        """The greatest."""
        return self.base + self.reach.last

    @property
    def end(self) -> int:
        """Behind the greatest byte."""
        return self.last + self.site.width


class Touched(NamedTuple):
    """What is accessed of one buffer, in the kernel's order.

    first, end: from the least byte on, below the greatest. read: the same of what is read; None
    where nothing is. apart: whether blocks keep out of each other's way.
    """

    accesses: tuple[Access, ...]
    first: int
    end: int
    read: tuple[int, int] | None
    written: bool
    apart: bool


class Trace(NamedTuple):
    """touched: by the tag of the buffer's addresses. steps: how many were gone through."""

    touched: Mapping[int, Touched]
    steps: int


def trace(
    kernel: Kernel, sites: Mapping[int, Site], shape: Shape, bits: Sequence[bytes], memo: Memo
) -> Trace | None:
    """Of a launch with these bits of its parameters; None where it has to be executed.

    sites: by the identity of an instruction. Addresses are tagged, so that those of the n-th buffer
    are the same in every launch: what it holds, its size and its owners are no part of this.
    """
    steps = code(kernel)
    if steps is None:
        return None
    key = tuple(bits)
    if key in memo.traces:
        found: Trace | None = memo.traces[key]
        return found
    made = _traced(steps, sites, shape, bits, memo)
    if made is None or sum(len(one.accesses) for one in made.touched.values()) <= MOST_KEPT:
        if len(memo.traces) == MOST_TRACES:
            memo.traces.clear()
        memo.traces[key] = made
    return made


def _traced(
    steps: Sequence[Step],
    sites: Mapping[int, Site],
    shape: Shape,
    bits: Sequence[bytes],
    memo: Memo,
) -> Trace | None:
    grid, block, shared_bytes = shape
    accesses: dict[int, list[Access]] = {}

    def accessed(step: Step, address: Value, where: Where) -> None:
        site = sites.get(id(step.instruction))
        if site is None or site.keeps:
            raise UndecidedError
        reach = memo.reaches.of(address, where)
        if reach is None:
            return  # nobody does it
        access = Access(site, address, where, address.base + step.offset, reach)
        tag = access.first >> TAG_BITS
        by = address.by
        unaligned = (by[0] | by[1] | by[2] | reach.bits | access.base) & (site.width - 1)
        if unaligned or access.last >> TAG_BITS != tag:
            raise UndecidedError
        accesses.setdefault(tag, []).append(access)

    walk = Walk(steps, bits, geometry(0, 1, block, grid), shared_bytes, memo, accessed)
    try:
        count = walk.run()
    except UndecidedError:
        return None
    return Trace({tag: _touched(found, memo) for tag, found in accesses.items()}, count)


def _touched(accesses: Sequence[Access], memo: Memo) -> Touched:
    read = [access for access in accesses if access.site.reads]
    prints = [Footprint(a.site.manner, a.base, a.site.width, a.reach) for a in accesses]
    return Touched(
        tuple(accesses),
        *_ends(accesses),
        _ends(read) if read else None,
        any(access.site.writes for access in accesses),
        apart(prints, memo.reaches),
    )


def _ends(accesses: Sequence[Access]) -> tuple[int, int]:
    """From the least byte that is touched on, below the greatest."""
    return min(a.first for a in accesses), max(a.end for a in accesses)
