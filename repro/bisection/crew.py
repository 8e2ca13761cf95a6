"""Trials of a search where they run: one after the other here, or several at once, each a task.

The outcome of a batch does not hang on which of its trials ends first: what follows is decided when
all of them have. Where a task runs, how often it is tried and what it may take is decided by
`execution`, as for every other command.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ..case import Case
from ..check import apart
from ..check.apart import How
from ..check.depth import Told
from ..execution.choice import Choice
from ..execution.play import Where, play
from ..execution.task import Needs, Task
from ..execution.telling import Teller
from . import trials
from .candidates import Candidate
from .groups import Group
from .question import Trial
from .repository import SHA
from .trials import Bench
from .verdicts import Observation

ENTRY = "trial"  # as `build` of `apart`, and what a clone of this machine has


@dataclass(slots=True)
class Crew:
    """Plays trials as tasks. needs: of a trial, before it is known where others ran. away: on a
    cluster. repo: a clone whose commits are read. requests, received: of all its trials."""

    how: How
    where: Where
    needs: Needs
    away: bool
    repo: Path | None = None
    requests: int = 0
    received: int = 0

    def takes(self, candidate: Candidate) -> bool:
        """Whether a trial can run apart: a commit of a clone is on this machine alone."""
        return not (self.away and self.repo is not None and SHA.fullmatch(candidate.word))


@contextmanager
def crew(
    case: Case, how: How, choice: Choice, folder: Path, repo: Path | None, told: Told
) -> Iterator[Crew]:
    """A crew for the search in `folder`. ClusterError; LaneError where engines need a GPU and none
    may be used."""
    hears = Teller(0, told).hear
    with apart.opened(case, how, choice, folder, hears) as (where, needs):
        yield Crew(how, where, needs, choice.ray is not None, repo)


def play_batch(
    bench: Bench,
    batch: Sequence[Trial],
    candidates: Mapping[str, Candidate],
    chosen: Group | None,
) -> Generator[Observation]:
    """The observations of a batch, each as soon as its trial has ended.

    chosen: where the trials that count ran; one that runs elsewhere would not. What ends one trial
    ends the batch, and is raised here: OSError where a record cannot be kept, UsageError,
    ClusterError, an interrupt.
    """
    crew = bench.crew
    if crew is None or not all(crew.takes(candidates[trial.build]) for trial in batch):
        for trial in batch:
            yield trials.run(bench, candidates[trial.build], trial.number)
        return
    folder = bench.folder / apart.FOLDER
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    try:
        case = apart.case_file(bench.asked.case, folder)
        needs = _needs(crew.needs, chosen)
        of = {f"{trial.build}-{trial.number}": trial for trial in batch}
        tasks = [
            _task(crew, bench, case, needs, name, candidates[trial.build])
            for name, trial in of.items()
        ]
        teller = Teller(len(tasks), bench.asked.told)
        for done in play(tasks, crew.where, teller.hear):
            answer = apart.answered(done)
            crew.requests += answer.traffic[0]
            crew.received += answer.traffic[1]
            trial = of[done.task.id]
            yield trials.kept(bench.folder, trial.build, trial.number, answer, done.place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _task(
    crew: Crew, bench: Bench, case: Path, needs: Needs, name: str, candidate: Candidate
) -> Task:
    task = apart.task_of(name, candidate.word, crew.how, bench.asked, case, needs, away=crew.away)
    more = {
        "repo": None if crew.repo is None else str(crew.repo.absolute()),
        "called": candidate.build,
    }
    return replace(task, entry=ENTRY, job={**task.job, **more}, label=candidate.build)


def _needs(needs: Needs, chosen: Group | None) -> Needs:
    """What a trial needs so that it counts beside those of a group."""
    if not needs.gpus or chosen is None or not chosen.known:
        return needs
    driver = f"=={chosen.driver}" if chosen.driver else ""
    return replace(needs, gpu_types=(chosen.gpu,), driver=driver)
