"""What orders the threads of a block, as it happened."""

from __future__ import annotations

from typing import NamedTuple

from .dtypes import Array


class Meeting(NamedTuple):
    """Threads `mask` (None: all) met, each those that its bits in `members` name."""

    mask: Array | None
    members: Array


class Passed(NamedTuple):
    """The blocks `rows` passed a barrier."""

    rows: Array


class Arrived(NamedTuple):
    """Threads `mask` came to barrier `number` and went on."""

    mask: Array
    number: int


class Gathered(NamedTuple):
    """Threads `mask`, not all of their blocks, passed barrier `number`."""

    mask: Array
    number: int
