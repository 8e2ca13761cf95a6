"""Who touched a piece of memory last, as far as it takes to find the next unordered access.

Memory is cut into granules of the width of the narrowest access. An access is one integer: when it
was, which instruction, and whose it was. Agents (threads, or blocks) come in groups (warps); inside
a group there is more order than between groups, so of reads and of atomic accesses three are kept:
the latest, the latest by another agent of its group, the latest by another group. What is older is
ordered before whatever these are ordered before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .dtypes import UNSIGNED, Array
from .rows import put_rows, rows_at
from .sites import RACES, Site

AGENT_BITS, SITE_BITS = 20, 16
TIME_SHIFT = AGENT_BITS + SITE_BITS
AGENTS, SITES = (1 << AGENT_BITS) - 1, (1 << SITE_BITS) - 1

NEVER = 1 << 26  # the time of what is not known yet, to whoever did it neither
# (agents, other agents): the latest time at which what the others did is known to the agents.
Known = Callable[[Array, Array], Array]


class Touch(NamedTuple):
    """One instruction's accesses.

    at: number of each one's record of the site's width, or one for all. lanes: None: all. values:
    of a store, an array an element, with one value a lane of the batch, or one for all. pending: a
    copy that has only begun.
    """

    site: Site
    at: Array
    lanes: Array | None
    values: tuple[Array, ...]
    pending: bool = False


class Conflict(NamedTuple):
    """Unordered accesses: those of an instruction, numbered `which`, and an earlier one of each.

    same: for each, whether both write and leave the same value; None: not both write. at_once: the
    earlier one is of the same execution of the instruction.
    """

    which: Array
    earlier: Array
    same: Array | None = None
    at_once: bool = False


class Latest:
    """The latest accesses of one manner to each of `granules`."""

    def __init__(self, granules: int, kept: int) -> None:
        self.slots = [np.zeros(granules, np.int64) for _ in range(kept)]
        self.used = False

    def conflicts(self, granules: Array, agents: Array, known: Known) -> list[Conflict]:
        """What is here of other agents and not known to `agents`, who touch `granules` now."""
        found = []
        for slot in self.slots if self.used else ():
            earlier = slot[granules]
            others = (earlier & AGENTS) - 1
            apart = (others != agents) | (earlier >> TIME_SHIFT == NEVER)
            which = ((earlier != 0) & apart).nonzero()[0]
            if which.size:
                times = earlier[which] >> TIME_SHIFT
                unknown = times > known(agents[which], others[which])
                which = which[unknown]
                if which.size:
                    found.append(Conflict(which, earlier[which]))
        return found

    def put(self, granules: Array, entries: Array) -> Array:
        """Note the accesses; those that are latest now, of several to one granule the last one."""
        self.used = True
        self.slots[0][granules] = entries
        result: Array = self.slots[0][granules]
        return result

    def add(self, granules: Array, entries: Array, groups: Callable[[Array], Array]) -> None:
        """Note the accesses, and keep of those that they displace what says more."""
        self.used = True
        first, same, other = self.slots
        before = first[granules]
        now = self.put(granules, entries)
        for older in (before, entries):
            which = ((older != 0) & ((older ^ now) & AGENTS != 0)).nonzero()[0]
            if not which.size:
                continue
            displaced, at = older[which], granules[which]
            alike = groups((displaced & AGENTS) - 1) == groups((now[which] & AGENTS) - 1)
            same[at[alike]] = displaced[alike]
            other[at[~alike]] = displaced[~alike]


class Shadow:
    """Reads, writes and atomic accesses of `granules`, and what was written last (uint8 rows)."""

    def __init__(self, granules: int, grain: int, groups: Callable[[Array], Array]) -> None:
        self.grain, self.groups = grain, groups
        self.latest = {manner: Latest(granules, 3) for manner in ("read", "poll", "atomic")}
        self.latest["write"] = self.written = Latest(granules, 1)
        self.content = np.zeros((granules, 1 << grain), np.uint8)

    def touch(
        self, site: Site, granules: Array, entries: Array, known: Known, raw: Array | None
    ) -> list[Conflict]:
        """Note accesses to `granules` by `entries`; those that others' accesses conflict with.

        raw: what a store writes, a row a granule. What ends a copy has nothing to fear from its
        beginning.
        """
        agents = (entries & AGENTS) - 1
        found: list[Conflict] = []
        for manner in RACES[site.manner]:
            if manner != "write" or raw is None:
                found += self.latest[manner].conflicts(granules, agents, known)
        if raw is None:
            self.latest[site.manner].add(granules, entries, self.groups)
            return found
        lands = site.keeps and not _is_pending(entries)
        for which, earlier, *_ in self.written.conflicts(granules, agents, known):
            if lands:
                mine = (earlier & AGENTS) - 1 == agents[which]
                which, earlier = which[~mine], earlier[~mine]
            same = (raw[which] == self.content[granules[which]]).all(axis=1)
            found.append(Conflict(which, earlier, same))
        self.content[granules] = raw
        now = self.written.put(granules, entries)
        lost = (((now ^ entries) & AGENTS) != 0).nonzero()[0]
        if lost.size:
            same = (raw[lost] == self.content[granules[lost]]).all(axis=1)
            found.append(Conflict(lost, now[lost], same, at_once=True))
        return found


def _is_pending(entries: Array) -> bool:
    return bool(entries.size) and int(entries[0]) >> TIME_SHIFT == NEVER


def written_bytes(touch: Touch, lanes: Array) -> Array:
    """uint8[accesses, width]: what a store writes, by the accesses of `lanes`."""
    dtype, elements = touch.site.key
    raw = np.empty((lanes.size, elements), dtype)
    for number, values in enumerate(touch.values):
        chosen = values if values.size == 1 else values[lanes]
        raw[:, number] = chosen if chosen.dtype == dtype else chosen.view(dtype)
    return raw.view(np.uint8).reshape(lanes.size, touch.site.width)


def alone(touches: list[tuple[Touch, Array]], size: int, *, lane: Array | None = None) -> bool:
    """Whether no byte of `size` bytes is written by one agent and touched by another.

    A quick look that may say no for nothing. touches: each with its agents, int32 from 1 on, one an
    access. Atomic accesses do not count against each other; nor do, where the lanes of the batch
    are given, writes of one instruction that leave the same value.
    """
    if not any(touch.site.writes for touch, _ in touches):
        return True
    grain = min(touch.site.width for touch, _ in touches)
    owners = np.zeros(-(-size // grain // MOST) * MOST, np.int32)
    placed = []
    fresh = True
    for touch, mine in touches:
        site, at = touch[:2]
        if at.size != mine.size:
            at = np.broadcast_to(at, mine.shape)
        view: Array = owners
        if site.width != grain:
            view, mine = owners.reshape(-1, site.width // grain), mine[:, None]
        placed.append((site, view, at, mine))
        if not site.writes:
            continue
        if not fresh:
            before = rows_at(view, at)
            allowed = ATOMIC if site.atomic else mine
            if np.logical_or.reduce((before != 0) & (before != allowed), axis=None):
                return False
        fresh = False
        _own(view, at, mine, atomic=site.atomic)
        if site.atomic or not np.logical_or.reduce(rows_at(view, at) != mine, axis=None):
            continue
        if lane is None or not _same(touch, lane):
            return False
    for site, view, at, mine in placed:
        if not site.writes:
            found = rows_at(view, at)
            wrong = (found != 0) & (found != mine)
            if site.atomic:
                wrong &= found != ATOMIC
            if np.logical_or.reduce(wrong, axis=None):
                return False
    return True


def _own(view: Array, at: Array, mine: Array, *, atomic: bool) -> None:
    """The records `at` of a view of owners are `mine` ([accesses] or [accesses, 1])."""
    if view.ndim == 1:
        view[at] = ATOMIC if atomic else mine
        return
    elements = view.shape[1]
    if atomic:
        put_rows(view, at, np.full((1, elements), ATOMIC, view.dtype))
    else:
        put_rows(view, at, np.repeat(mine, elements, axis=1).astype(view.dtype, copy=False))


ATOMIC = -1  # an owner of its own
MOST = 32  # granules of one access


def _same(touch: Touch, lane: Array) -> bool:
    """Whether accesses to one record all write the same there."""
    if all(values.size == 1 for values in touch.values):
        return True
    raw = written_bytes(touch, lane if touch.lanes is None else touch.lanes)
    words = raw.view(UNSIGNED[min(touch.site.width, 8)])
    at = np.broadcast_to(touch.at, len(words))
    left = np.empty((int(at.max()) + 1, words.shape[1]), words.dtype)
    left[at] = words
    return not np.logical_or.reduce(left[at] != words, axis=None)
