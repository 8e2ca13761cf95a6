"""Arrays of a session that nobody has written yet, and what of them was written since.

An array that `empty` made cannot be told from others, so a session is told which they are. They are
filled with POISON. What a kernel stores is seen; what the program itself writes between launches is
not, but an element that no longer holds POISON was written by somebody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from .memory import POISON
from .numpy_pointer import Region, Storages, region, wrapped

Bytes = NDArray[np.uint8]
Marks = NDArray[np.bool_]


@dataclass(slots=True)
class _Allocation:
    """Memory of which parts were declared. memory: live. written: by byte. parts: first byte, bytes
    and bytes of an element of each. owners: kept, so that the memory is not given to others.
    """

    address: int
    memory: Bytes
    written: Marks
    parts: list[tuple[int, int, int]] = field(default_factory=list)
    owners: list[Any] = field(default_factory=list)


class Unwritten:
    """The declared arrays of a session."""

    def __init__(self) -> None:
        self._allocations: dict[tuple[int, int], _Allocation] = {}

    def declare(self, array: Any) -> None:
        """From now on nobody has written a numpy array or CPU tensor; it is filled with POISON.

        UsageError where it is neither, has gaps between its elements, or cannot be written.
        """
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
        known = self._allocations.get(key)
        if known is None:
            marks = np.ones(memory.nbytes, np.bool_)
            known = self._allocations[key] = _Allocation(key[0], memory, marks)
        first, size = found.address - known.address, found.data.nbytes
        known.parts.append((first, size, found.data.itemsize))
        known.owners.append(array)
        memory[first : first + size] = POISON
        known.written[first : first + size] = False

    def look(self) -> None:
        """Before a launch: elements that the program itself has changed count as written."""
        for each in self._allocations.values():
            for first, size, item in each.parts:
                part = slice(first, first + size)
                changed = (each.memory[part].reshape(-1, item) != POISON).any(axis=1)
                each.written[part].reshape(-1, item)[changed] = True

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
        return None
