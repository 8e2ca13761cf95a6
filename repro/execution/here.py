"""This process tree: tasks by threads, GPUs of this machine one task each."""

from __future__ import annotations

import platform
import queue
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import LaneError
from ..lanes.process import Children
from .apart import perform_apart
from .cards import Cards
from .entries import ENTRIES, Work, perform
from .laying_out import job_text, lay_out
from .play import Told
from .task import Attempt, Fate, Moment, Outcome, Place

SILENCE = 1.0  # seconds that `wait` waits


@dataclass(slots=True)
class Here:
    """A `Where`. workers: tasks at once. shared: a folder that tasks share. cards: GPUs that may be
    used, None where no task needs one. What an entry raises comes out of `wait`."""

    workers: int
    shared: Path
    pool: ThreadPoolExecutor
    cards: Cards | None = None
    children: Children = field(default_factory=Children)
    ended: queue.SimpleQueue[Outcome | BaseException] = field(default_factory=queue.SimpleQueue)
    open: int = 0

    def room(self) -> bool:
        return self.open < 2 * self.workers  # a worker that ends finds the next one there

    def start(self, attempt: Attempt, told: Told) -> None:
        self.open += 1
        self.pool.submit(self._work, attempt, told)

    def wait(self) -> Sequence[Outcome]:
        try:
            came = self.ended.get(timeout=SILENCE)
        except queue.Empty:
            return ()
        self.open -= 1
        if isinstance(came, BaseException):
            raise came
        return (came,)

    def avoid(self, key: str, reason: str) -> None:
        if self.cards is not None:
            self.cards.avoid(key, reason)

    def stop(self) -> None:
        """Where nothing is at work, nothing is ended, and more may be played."""
        if self.open:
            self.children.stop()
            if self.cards is not None:
                self.cards.close()

    def _work(self, attempt: Attempt, told: Told) -> None:
        try:
            self.ended.put(self._outcome(attempt, told))
        except BaseException as error:  # it is raised again where the play waits
            self.ended.put(error)

    def _outcome(self, attempt: Attempt, told: Told) -> Outcome:
        if self.children.stopped:
            return Outcome(attempt, Fate.NOWHERE, reason="the run was interrupted")
        if not attempt.task.needs.gpus:
            return self._perform(attempt, Place(machine=platform.machine()), told)
        if self.cards is None:
            return Outcome(attempt, Fate.NOWHERE, reason="no GPU was made ready")
        try:
            place = self.cards.take(attempt)
        except LaneError as error:
            return Outcome(attempt, Fate.NOWHERE, reason=str(error))
        try:
            outcome = self._perform(attempt, place, told)
            if outcome.ended.unwell:  # before another task can take it
                for key in place.keys:
                    self.cards.avoid(key, outcome.ended.unwell)
            return outcome
        finally:
            self.cards.give(place)

    def _perform(self, attempt: Attempt, place: Place, told: Told) -> Outcome:
        task = attempt.task
        told(Moment("started", task, place))
        lay_out(
            task.directory,
            job_text(task.job),
            {name: path.read_bytes() for name, path in task.files.items()},
        )
        work = Work(
            task.directory,
            task.timeout,
            self.shared,
            self.children,
            place.gpus,
            told=lambda: told(Moment("working", task, place)),
        )
        if ENTRIES[task.entry].apart:
            with tempfile.TemporaryDirectory(prefix="specrepro-") as folder:
                ended = perform_apart(task.entry, work, Path(folder) / "task")
        else:
            ended = perform(task.entry, work)
        return Outcome(attempt, Fate.WHOLE, place, ended=ended)


@contextmanager
def here(workers: int, shared: Path, cards: Cards | None = None) -> Iterator[Here]:
    """A place in this process tree; at the end all that was started in it has ended."""
    with ThreadPoolExecutor(max(1, workers)) as pool:
        place = Here(max(1, workers), shared, pool, cards)
        try:
            yield place
        finally:
            place.stop()
            if cards is not None:
                cards.close()
