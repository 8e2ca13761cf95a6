"""The one door: tasks go in, each comes out once, with its result or with why it has none.

Retries, time-outs and what counts are decided here, by `policy`, in the same way for every place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Protocol

from .policy import Again, Counted, Dropped, Ledger
from .task import Attempt, Done, Moment, Outcome, Task

Told = Callable[[Moment], None]


class Where(Protocol):
    """A place to run in: a process tree, or a cluster."""

    def room(self) -> bool:
        """Whether one more attempt may be handed over now."""
        ...

    def start(self, attempt: Attempt, told: Told) -> None:
        """Hand an attempt over; it may have to wait for what it needs. `told` hears, from whichever
        thread, where it started and that it works."""
        ...

    def wait(self) -> Sequence[Outcome]:
        """Wait for attempts to end: their outcomes, () if none has for a second."""
        ...

    def avoid(self, key: str, reason: str) -> None:
        """Start nothing more at a place."""
        ...

    def stop(self) -> None:
        """End what was handed over and has not ended, and all that it started."""
        ...


def play(tasks: Iterable[Task], where: Where, told: Told = lambda moment: None) -> Generator[Done]:
    """Play tasks and give each its one result, in the order in which they end.

    Whatever ends the caller's loop (an interrupt, an exception, `close`) ends what still runs.
    ValueError for two tasks of one id. What `where` raises when it is lost as a whole comes
    through.
    """
    ledger = Ledger()
    attempts = deque(ledger.begin(task) for task in tasks)
    avoided: set[str] = set()
    try:
        while ledger.waiting:
            while attempts and where.room():
                attempt = attempts.popleft()
                if ledger.wants(attempt):
                    where.start(attempt, told)
            for outcome in where.wait():
                decision = ledger.heard(outcome)
                for key in ledger.avoided.keys() - avoided:
                    avoided.add(key)
                    where.avoid(key, ledger.avoided[key])
                    told(Moment("avoided", None, outcome.place, f"{key}: {ledger.avoided[key]}"))
                match decision:
                    case Counted(done):
                        told(Moment("ended", done.task, done.place, done.lost))
                        yield done
                    case Again(again, reason):
                        told(Moment("again", again.task, outcome.place, reason))
                        attempts.append(again)
                    case Dropped():
                        pass  # what counts was told when it came
    finally:
        where.stop()
