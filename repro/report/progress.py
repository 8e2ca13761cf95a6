"""What a person sees while a run works, on stderr: one moving line, or a plain line an event."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..escape import printable
from .console import console

if TYPE_CHECKING:
    from ..run import Event

PLACES = 3  # nodes and GPUs that are named
SHORT = 2.0  # seconds of a job of which nothing need be told


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
                if event.note:
                    out.print(printable(event.note), soft_wrap=True)
                if event.ended:
                    detail = f": {event.detail}" if event.detail else ""
                    trials = f"{event.trials} trial{'s'[: event.trials != 1]}"
                    out.print(f"{event.case} in lane {event.lane}: {trials}{detail}")

        yield line
        return
    working: dict[tuple[str, str], str] = {}
    with out.status("starting") as status:

        def move(event: Event) -> None:
            with lock:
                if event.note:
                    out.print(printable(event.note), soft_wrap=True)
                    return
                if event.ended:
                    working.pop((event.case, event.lane), None)
                else:
                    working[event.case, event.lane] = at_work(event)
                status.update(", ".join(working.values()) or "judging")

        yield move


def at_work(event: Event) -> str:
    """A job that is at work, with what says that it goes on: its trial and its seconds."""
    words = f"{event.case} in {event.lane}"
    if event.places:
        words += f" on {', '.join(event.places[:PLACES])}"
        words += f" and {len(event.places) - PLACES} more" if len(event.places) > PLACES else ""
    if event.seconds < SHORT:
        return words
    number = min(event.played + 1, event.trials)  # the mark of completion is a line as well
    return f"{words} (trial {number} of {event.trials}, {event.seconds:.0f} s)"
