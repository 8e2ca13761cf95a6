"""Arrays of a session that nobody has written yet, and what of them was written since.

They are filled with a pattern. What a kernel stores is seen; what the program itself writes between
launches is not, but bytes that no longer hold the pattern were written by somebody. A declared
array is looked at element by element, with POISON for a pattern. One that was only seen being made
is looked at eight bytes at a time, with a pattern drawn by lot, so that what a program writes is
not taken for it; bytes that make up no such word count as written.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SpecreproError, UsageError
from .memory import POISON
from .numpy_pointer import Region, Storages, region, wrapped

Bytes = NDArray[np.uint8]
Marks = NDArray[np.bool_]
WORD = 8  # bytes


@dataclass(slots=True)
class _Part:
    """`size` bytes from byte `first` on, filled with `pattern` again and again.

    kept: what keeps the memory from being given to others. there: whether it still is the array's.
    """

    first: int
    size: int
    pattern: Bytes
    kept: Any
    there: Callable[[], bool] = lambda: True


@dataclass(slots=True)
class _Allocation:
    """Memory of which parts were declared. memory: live. written: by byte."""

    address: int
    memory: Bytes
    written: Marks
    parts: list[_Part] = field(default_factory=list)

    def declare(self, part: _Part) -> None:
        span = slice(part.first, part.first + part.size)
        self.memory[span].reshape(-1, part.pattern.size)[:] = part.pattern
        self.written[span] = False
        self.parts.append(part)

    def look(self) -> None:
        """Mark what no longer holds its pattern, and let go of parts that are written or gone."""
        kept = []
        for part in self.parts:
            marks = self.written[part.first : part.first + part.size]
            if not part.there():
                marks[:] = True
                continue
            held = self.memory[part.first : part.first + part.size]
            changed = (held.reshape(-1, part.pattern.size) != part.pattern).any(axis=1)
            marks.reshape(-1, part.pattern.size)[changed] = True
            if not marks.all():
                kept.append(part)
        self.parts = kept


class Unwritten:
    """The arrays of a session that nobody has written."""

    def __init__(self) -> None:
        self._allocations: dict[tuple[int, int], _Allocation] = {}
        self._made: dict[tuple[int, int], _Allocation] = {}
        self._pattern = np.frombuffer(os.urandom(WORD), np.uint8)

    def declare(self, array: Any) -> None:
        """From now on nobody has written a numpy array or CPU tensor; it is filled with POISON.

        UsageError where it is neither, has gaps between its elements, or cannot be written.
        """
        found, key, memory = _whole(array)
        known = self._allocations.get(key)
        if known is None:
            known = self._allocations[key] = _allocation(key, memory)
        pattern = np.full(found.data.itemsize, POISON, np.uint8)
        first = found.address - known.address
        known.declare(_Part(first, found.data.nbytes, pattern, array))

    def made(self, array: Any) -> None:
        """The same for an array that was seen being made, as long as it is there."""
        try:
            found, key, memory = _whole(array)
        except (SpecreproError, AttributeError, RuntimeError, TypeError, ValueError):
            return  # nothing that a launch could take: it counts as written if one does
        size = found.data.nbytes // WORD * WORD
        if not size:
            return
        known = self._made[key] = _allocation(key, memory)
        storage = array.untyped_storage() if hasattr(array, "untyped_storage") else None
        alive = weakref.ref(array)

        def there() -> bool:  # it may have been resized in place
            now = alive()
            if now is None:
                return False
            if storage is not None:
                return bool((storage.data_ptr(), storage.nbytes()) == key)
            return bool((now.__array_interface__["data"][0], now.nbytes) == key)

        weakref.finalize(array, self._made.pop, key, None)
        known.declare(_Part(found.address - known.address, size, self._pattern, storage, there))

    def look(self) -> None:
        """Before a launch: what the program itself has changed counts as written."""
        for each in self._allocations.values():
            each.look()
        for key, each in list(self._made.items()):
            each.look()
            if not each.parts:
                self._made.pop(key, None)

    def marks(self, given: Region) -> Marks | None:
        """bool[bytes] of an argument, live: which were written. None: all of them.

        UsageError where it reaches out of the memory in which declared elements lie.
        """
        first, size = given.address, given.data.nbytes
        for each in self._allocations.values():
            end = each.address + each.memory.nbytes
            if each.address <= first and first + size <= end:
                return each.written[first - each.address : first - each.address + size]
            if first < end and each.address < first + size:
                raise UsageError(
                    f"{given.shown} reaches beyond an array that was declared uninitialised",
                    hint="declare the array that holds both",
                )
        for each in self._made.values():
            if each.address <= first and first + size <= each.address + each.memory.nbytes:
                return each.written[first - each.address : first - each.address + size]
        return None


def _whole(array: Any) -> tuple[Region, tuple[int, int], Bytes]:
    """An array, its allocation and the memory of that. UsageError where it has not all of it."""
    storages: Storages = {}
    found = region("to uninitialised", wrapped(array), storages)
    if found.copy:
        raise UsageError("an array that cannot be written cannot be uninitialised")
    if found.data.size != found.elements:
        raise UsageError(
            f"{found.shown} has gaps between its elements, which would count as unwritten too",
            hint="declare the array that it is a view of",
        )
    [(key, memory)] = storages.items()
    return found, key, memory


def _allocation(key: tuple[int, int], memory: Bytes) -> _Allocation:
    return _Allocation(key[0], memory, np.ones(memory.nbytes, np.bool_))
