"""A depth whose GPU may go: what happens then says nothing of a build."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..check.apart import at_home
from ..check.defects import BuildVerdict
from ..check.depth import Asked, Depth, Opener
from ..errors import GpuLostError
from .groups import group
from .trials import as_place
from .verdicts import Place


class Guarded:
    """A depth that looks before each trial, and after one that came to nothing, whether the GPU of
    the search is still there. A `Depth`.

    place: where the search began. now: where it would begin at this moment.
    """

    def __init__(self, depth: Depth, place: Place, now: Callable[[], Place | None]) -> None:
        self._depth = depth
        self._place = place
        self._now = now

    @property
    def name(self) -> str:
        return self._depth.name

    @property
    def looked_at(self) -> str:
        return self._depth.looked_at

    def answer(self, spec: str, builds: Opener, asked: Asked) -> dict[str, Any]:
        """As the depth answers. GpuLostError where the GPU is not there any more."""
        self._look()
        row = self._depth.answer(spec, builds, asked)
        if row["verdict"] == BuildVerdict.UNTESTABLE:
            self._look()
        return row

    def _look(self) -> None:
        began, now = group(self._place), group(self._now())
        if now != began:
            raise GpuLostError(
                f"the search began on {began}, and there is now {now}",
                hint="specrepro doctor says what the driver shows; the same command goes on",
            )


def guarded(depth: Depth, place: Place | None) -> Depth:
    """The depth, looked after where it uses a GPU of this machine."""
    if place is None or not place.gpu:
        return depth
    return Guarded(depth, place, lambda: as_place(at_home(depth.name)))
