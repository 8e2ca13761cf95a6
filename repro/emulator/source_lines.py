"""Which source line an instruction belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .ptx import Place

MAX_FRAMES = 100  # of one chain of inlined calls

Frame = tuple[int, int, int]  # file, line, column


class Location(NamedTuple):
    """A `.loc`: the innermost frame first, then the calls through which it was inlined."""

    frames: tuple[Frame, ...]


class SourceLines:
    """The `.file` and `.loc` directives of a module, in their order.

    A `.loc` names one call site; the frames further out are those of the latest `.loc` of that
    site, which the compilers write before it.
    """

    def __init__(self) -> None:
        self.files: dict[int, str] = {}
        self.chains: dict[Frame, tuple[Frame, ...]] = {}

    def location(self, frame: Frame, inlined: Frame | None) -> Location:
        """The `.loc` of `frame`, inlined at `inlined`."""
        chain: tuple[Frame, ...] = (frame,)
        if inlined is not None:
            chain += self.chains.get(inlined, (inlined,))
        self.chains[frame] = chain[:MAX_FRAMES]
        return Location(self.chains[frame])

    def places(self, locations: Sequence[Location | None]) -> list[Place]:
        """For each instruction of a kernel, the place of its innermost frame in the kernel's file.

        That file is the one of the kernel's first `.loc`. Line 0 means that the compiler has no
        line: the place before it stays. Call it when every `.file` has been read.
        """
        own = next((at.frames[-1][0] for at in locations if at is not None), None)
        place = Place("", 0)
        places = []
        last: Location | None = None
        for location in locations:
            if location is not None and location is not last:
                place = self._place(location, own) or place
                last = location
            places.append(place)
        return places

    def own_file(self, locations: Sequence[Location | None]) -> str:
        """The file in which code with these `.loc` is written; "" where there is none."""
        own = next((at.frames[-1][0] for at in locations if at is not None), None)
        return "" if own is None else self.files.get(own, "")

    def _place(self, location: Location, own: int | None) -> Place | None:
        for file, line, _ in location.frames:
            if file == own and line > 0:
                return Place(self.files.get(file, ""), line)
        file, line, _ = location.frames[0]
        return Place(self.files.get(file, ""), line) if line > 0 else None
