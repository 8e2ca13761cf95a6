"""Instructions that touch memory, as far as the checks need them."""

from __future__ import annotations

from typing import NamedTuple

from .dtypes import DType
from .ptx import Place

# Manners of access, and those that each is a race with.
RACES = {
    "read": ("write", "atomic"),
    "poll": ("write",),
    "write": ("read", "poll", "write", "atomic"),
    "atomic": ("read", "write"),
}


class Site(NamedTuple):
    """An instruction that touches memory.

    key: dtype and elements of one access; width: its bytes. atomic: no race with what is atomic
    too; updates: it reads what it writes over. keeps: a copy, which takes along whether its source
    was initialised, and so may read what was not.
    """

    place: Place
    space: str
    key: tuple[DType, int]
    width: int
    writes: bool
    atomic: bool = False
    updates: bool = False
    keeps: bool = False

    @property
    def reads(self) -> bool:
        """Whether what was there before matters."""
        return not self.writes or self.updates

    @property
    def manner(self) -> str:
        """What it does to memory: read, write, poll (an atomic read) or atomic (all other)."""
        if self.atomic:
            return "atomic" if self.writes else "poll"
        return "write" if self.writes else "read"
