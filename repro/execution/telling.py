"""How far a play has come, in one line: how many tasks have ended, what runs where."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ..escape import printable
from .task import HERE, Moment, Place, Task

MOST_SHOWN = 4  # tasks at work that are named
LONGEST_NAME = 32  # characters


@dataclass(slots=True)
class Teller:
    """Hears moments of a play, from any thread, and tells a line after each that changes it.

    total: tasks of the play. avoided: places that are not used any more, each with the reason.
    nodes: what was said last of a node that came or went.
    """

    total: int
    told: Callable[[str], None]
    ended: int = 0
    again: int = 0
    avoided: list[str] = field(default_factory=list)
    nodes: str = ""
    _at_work: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, moment: Moment) -> None:
        """Take a moment in."""
        with self._lock:
            if not self._changed(moment):
                return
            line = self.line()
        self.told(line)

    def line(self) -> str:
        """As it stands."""
        parts = [f"{self.ended} of {self.total}"] if self.total else []
        if self.nodes and not self._at_work:
            parts.append(self.nodes)
        if self.again:
            parts.append(f"{self.again} tried again")
        shown = list(self._at_work.values())[-MOST_SHOWN:]
        more = len(self._at_work) - len(shown)
        if shown:
            parts.append(", ".join(shown) + (f" and {more} more" if more else ""))
        if self.avoided:
            parts.append(f"avoided: {'; '.join(self.avoided)}")
        return printable(" · ".join(parts))

    def _changed(self, moment: Moment) -> bool:
        task = moment.task
        if moment.state == "avoided":
            self.avoided.append(moment.detail)
        elif moment.state == "node":
            self.nodes = moment.detail
        elif task is None:
            return False
        elif moment.state in ("started", "working"):
            said = f"{_named(task)}{on(moment.place)}"
            if self._at_work.get(task.id) == said:
                return False
            self._at_work[task.id] = said
        else:
            self._at_work.pop(task.id, None)
            self.ended += moment.state == "ended"
            self.again += moment.state == "again"
        return True


def _named(task: Task) -> str:
    name = task.label or task.id
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def on(place: Place | None) -> str:
    """` on node 1a2b3c4d (NVIDIA H100 PCIe)`; "" for this process tree without a GPU."""
    if place is None or (place.node == HERE and not place.gpus):
        return ""
    node = "" if place.node == HERE else f"{place.said or place.node}"
    gpus = ", ".join(place.gpus)
    kind = place.gpu_type or ("GPU" if gpus else "")
    return " on " + " ".join(
        part for part in (node, f"({kind})" if node and kind else kind) if part
    )
