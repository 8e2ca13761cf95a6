"""What was found of a kernel for one grid and block, kept for the launches that follow.

Constants, and what is computed of the same objects, are the same objects again, so that a launch
with the same numbers finds all of its arithmetic here, and one with another size that which does
not hang on it. Keys are identities: whatever they are of is kept with them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ..geometry import Triple
from ..ptx import Kernel
from .reach import Reaches
from .value import Value, constant

T = TypeVar("T")
MOST_ENTRIES = 2_000
MOST_SHAPES = 8  # of one kernel

Shape = tuple[Triple, Triple, int]


class Memo:
    """For one kernel, grid and block."""

    def __init__(self, grid: Triple) -> None:
        self.constants: dict[int, Value] = {}
        self.found: dict[Hashable, tuple[Any, Any]] = {}
        self.reaches = Reaches(grid)
        self.traces: dict[tuple[bytes, ...], Any] = {}  # by the bits of the arguments

    def constant(self, number: int) -> Value:
        """The one object for a number."""
        found = self.constants.get(number)
        if found is None:
            found = self.constants[number] = constant(number)
        return found

    def once(self, key: Hashable, of: Any, make: Callable[[], T]) -> T:
        """What `make` gave for `key` the first time. of: the objects whose identities it names."""
        entry = self.found.get(key)
        if entry is None:
            entry = self.found[key] = (make(), of)
        made: T = entry[0]
        return made

    def forget(self, key: Hashable) -> None:
        """What is too large to be kept."""
        self.found.pop(key, None)

    @property
    def full(self) -> bool:
        return len(self.found) + len(self.constants) + len(self.reaches.found) > MOST_ENTRIES


_MEMOS: WeakKeyDictionary[Kernel, dict[Shape, Memo]] = WeakKeyDictionary()


def memo(kernel: Kernel, shape: Shape) -> Memo:
    """Of a kernel, for grid, block and bytes of dynamic shared memory."""
    memos = _MEMOS.setdefault(kernel, {})
    found = memos.get(shape)
    if found is None or found.full:
        if len(memos) >= MOST_SHAPES:
            memos.clear()
        found = memos[shape] = Memo(shape[0])
    return found
