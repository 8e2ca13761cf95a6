"""Several trials at once, each by a bench of its own: what one bench holds is for one thread.

A trial waits for processes and servers, so threads are enough. The outcome of a batch does not hang
on which of its trials ends first: what follows is decided when all of them have.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from ..check.depth import Told
from . import trials
from .candidates import Candidate
from .question import Trial
from .trials import Bench
from .verdicts import Observation

GRACE = 5.0  # seconds that trials have to end in when the search is stopped


class StoppedError(BaseException):
    """The search was stopped. Like an interrupt it is no error of a trial, and nothing that
    handles those may take it for one."""


def play(
    benches: Sequence[Bench], batch: Sequence[Trial], candidates: Mapping[str, Candidate]
) -> Generator[Observation]:
    """The observations of a batch, each as soon as its trial has ended. batch: no more trials than
    there are benches.

    What ends one trial ends the batch, and is raised here: OSError where a record cannot be kept,
    UsageError. So does an interrupt; the others then have GRACE seconds, and what they started
    ends with this process at the latest.
    """
    if len(batch) == 1:
        yield trials.run(benches[0], candidates[batch[0].build], batch[0].number)
        return
    stop = threading.Event()
    ended: queue.SimpleQueue[Observation | BaseException] = queue.SimpleQueue()

    def work(bench: Bench, trial: Trial) -> None:
        told = _heard(bench.asked.told, stop)
        mine = replace(bench, asked=replace(bench.asked, told=told))
        try:
            ended.put(trials.run(mine, candidates[trial.build], trial.number))
        except BaseException as error:  # it is raised again where the search waits
            ended.put(error)

    workers = [
        threading.Thread(target=work, args=pair, daemon=True)
        for pair in zip(benches, batch, strict=False)
    ]
    for worker in workers:
        worker.start()
    try:
        for _ in batch:
            came = ended.get()
            if isinstance(came, BaseException):
                raise came
            yield came
    finally:
        stop.set()
        deadline = time.monotonic() + GRACE
        for worker in workers:
            worker.join(max(deadline - time.monotonic(), 0.0))


def _heard(told: Told, stop: threading.Event) -> Told:
    """`told`, which a trial of minutes calls every second, and which is where it can be ended."""

    def say(line: str) -> None:
        if stop.is_set():
            raise StoppedError
        told(line)

    return say
