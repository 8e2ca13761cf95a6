"""What a person sees while a run works, on stderr: one moving line, or a plain line an event."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .console import console

if TYPE_CHECKING:
    from ..run import Event


@contextmanager
def progress(silent: bool) -> Iterator[Callable[[Event], None]]:
    """A function that takes the events of a run and shows them until the block ends."""
    out = console(stderr=True)
    if silent:
        yield lambda event: None
        return
    lock = threading.Lock()
    if not out.is_terminal or out.is_dumb_terminal:

        def line(event: Event) -> None:
            with lock:
                if event.ended:
                    detail = f": {event.detail}" if event.detail else ""
                    trials = f"{event.trials} trial{'s'[: event.trials != 1]}"
                    out.print(f"{event.case} in lane {event.lane}: {trials}{detail}")

        yield line
        return
    working: dict[tuple[str, str], int] = {}
    with out.status("starting") as status:

        def move(event: Event) -> None:
            with lock:
                if event.ended:
                    working.pop((event.case, event.lane), None)
                else:
                    working[event.case, event.lane] = event.trials
                names = ", ".join(f"{case} in {lane}" for case, lane in working)
                status.update(names or "judging")

        yield move
