"""A whole bisection: releases, then the commits between two of them, then what else changed there.

Everything is written into one run directory; the record at its end is all that pages are made of.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import store
from ..check.builds import Builds
from ..check.depth import Asked, Told
from ..check.probes import load
from ..check.settings import read_settings
from ..check.source import members
from ..check.web import Web
from ..errors import Exit, InterruptedRunError, UntestableError, UsageError
from ..escape import printable
from . import aftermath, other_flips, session
from .boundary import boundary, of_a_change
from .candidates import Line, release_line
from .commit_index import CommitIndex
from .commits import End, between
from .crew import Crew, crew
from .groups import counted
from .guard import guarded
from .journal import Journal
from .pair import pair
from .plan import READ, Plan, about, identity
from .question import Ending, Find, Kind, Options, Result
from .record import Stage, bisect_record, status
from .repository import Repository
from .session import Quest, Shown
from .sides import row_at, side_of
from .timeline import states
from .trials import PROJECT, Bench, LineBuilds, row_of
from .verdicts import Observation


@dataclass(frozen=True, slots=True)
class Report:
    """The record, specrepro/bisect@1, and the status it ends with."""

    record: dict[str, Any]
    status: Exit


def investigate(
    plan: Plan, builds: Builds, folder: Path, *, anew: bool, told: Told, shown: Shown
) -> Report:
    """Search, or go on searching, and store the record in the session's run directory.

    A session that the machine or a budget stopped stays open: the same command goes on with it.
    Errors: UsageError, UntestableError (no index, no room to write), InterruptedRunError.
    """
    part = plan.case.case.check
    if part is None:
        raise UsageError(f"{plan.case.case.id} does not say which defects to look for in a build")
    if plan.commit_index and not plan.repo:
        raise UsageError(
            "an index of commits does not list them",
            hint="--repo names a clone of the engine's repository, which does",
        )
    repository = Repository(plan.repo) if plan.repo else None
    began = time.monotonic()

    def prepare() -> dict[str, Any]:
        line = release_line(builds.files(), PROJECT, plan.wish)
        return {"line": session.kept(_quest(plan, session.RELEASES, line, plan.options))}

    path, _ = session.take_up(
        folder, identity(plan), prepare, anew=anew, finished=bool(plan.closer)
    )
    with store.held(path):
        request = store.request(path)
        # what a case asks for information only is left out: a search reads many builds
        asked = Asked(plan.case, part.records(), (), plan.question, plan.seconds, told, path)
        opener = LineBuilds(builds, repository, PROJECT)
        try:
            with _crew(plan, path, told) as together:
                depth = guarded(plan.depth, plan.place)
                bench = Bench(depth, asked, opener, path, plan.place, together)
                stages, found = _search(plan, bench, request, repository, told, shown)
                others = _others(plan, bench, stages[0], told, shown)
                more, whole = _closer(plan, bench, stages, found, told, shown)
        except KeyboardInterrupt as error:
            raise InterruptedRunError(
                "stopped; what was tried is kept", hint=f"the same command goes on: {plan.again}"
            ) from error
        except OSError as error:
            raise UsageError(
                f"a trial could not be written down: {error.strerror or error}",
                where=printable(str(path)),
                hint="with room there, the same command goes on",
            ) from error
        requests, received = builds.traffic
        if together is not None:
            requests, received = requests + together.requests, received + together.received
        record = bisect_record(
            about(plan, path, request, time.monotonic() - began, (requests, received)),
            stages,
            found,
            scan=plan.scan,
            more=[*others, *more],
        ) | {"flips": other_flips.records(others)}
        endings = {stages[-1].result.ending, *(one.result.ending for one in others)}
        if whole and not endings & {Ending.INFRA, Ending.BUDGET}:
            store.finish(path, record)
    return Report(record, status(stages))


def _crew(plan: Plan, folder: Path, told: Told) -> AbstractContextManager[Crew | None]:
    """Who runs trials apart, where that is asked for."""
    if plan.apart is None:
        return nullcontext()
    return crew(plan.case.case, plan.apart.how, plan.apart.choice, folder, plan.repo, told)


def _search(
    plan: Plan,
    bench: Bench,
    request: Mapping[str, Any],
    repository: Repository | None,
    told: Told,
    shown: Shown,
) -> tuple[list[Stage], dict[str, Any] | None]:
    line = session.restored(request["line"]).line
    stages = [_stage(plan, _quest(plan, session.RELEASES, line, plan.options), bench, told, shown)]
    first = stages[0].result
    located = first.kind in {Kind.FIRST_BAD, Kind.FIRST_GOOD}
    if repository is not None and located:
        stages.append(_commits(plan, bench, stages[0], repository, told, shown))
    last = next((s for s in reversed(stages) if s.result.kind is not Kind.NONE), None)
    if last is None or last.result.build is None or last.result.previous is None:
        return stages, None
    if plan.injected is not None:
        # what differs between two releases did not make a boundary that was put between them
        empty = of_a_change(last.result.previous, last.result.build)
        return stages, empty if plan.closer else None
    before, after = (side_of(bench, last, b) for b in (last.result.previous, last.result.build))
    found = boundary(before, after)
    if repository is not None and last.name != session.RELEASES:
        note = next(c.note for c in last.line.candidates if c.build == last.result.build)
        on_main = repository.on_main(last.result.build)
        found["commit"] = {"sha": last.result.build, "subject": note, "on_main": on_main}
    return stages, found


def _others(plan: Plan, bench: Bench, releases: Stage, told: Told, shown: Shown) -> list[Stage]:
    """The boundaries between releases besides the one that was found, where they are asked for."""
    if not plan.all_flips or releases.result.ending in {Ending.INFRA, Ending.BUDGET}:
        return []
    return other_flips.search_all(
        releases,
        plan.options,
        plan.signature,
        lambda quest: _stage(plan, quest, bench, told, shown),
    )


def _closer(
    plan: Plan,
    bench: Bench,
    stages: Sequence[Stage],
    found: dict[str, Any] | None,
    told: Told,
    shown: Shown,
) -> tuple[list[Stage], bool]:
    """Put what carries the fault into `found`, if that is asked. Its trials; whether all is had."""
    if not plan.closer or found is None:
        return [], True
    last = next(stage for stage in reversed(stages) if stage.result.kind is not Kind.NONE)
    both = pair(last, found["defaults"], bench.asked.question.fixed)
    if both is None:
        found["unknown"].append("what carries the fault: the boundary is not confirmed")
        return [], True
    closer = aftermath.look_closer(plan.closer, both, last, bench, plan.options, told, shown)
    for name, rows in closer.parts.items():
        found[name] += rows
    return [closer.stage], closer.whole


def _quest(plan: Plan, name: str, line: Line, options: Options) -> Quest:
    scan = plan.scan and name == session.RELEASES
    return Quest(name, line, options, scan, plan.signature)


def _stage(plan: Plan, quest: Quest, bench: Bench, told: Told, shown: Shown) -> Stage:
    journal, result = session.search(quest, bench, told, shown, plan.ahead)
    return stage_of(quest, journal, result, bench.folder)


def stage_of(quest: Quest, journal: Journal, result: Result, folder: Path) -> Stage:
    """A line with all that is known of it."""
    rows = {
        event.log: row
        for event in journal.events
        if isinstance(event, Observation) and (row := row_of(folder, event)) is not None
    }
    find = quest.options.find
    known = session.events_of(quest, journal)
    if result.previous is not None:
        # the ends may have turned out to be the other way round
        events = counted(known, mixed=quest.options.mix_hosts)
        was = states(quest.line.builds, events)[result.previous]
        find = Find.FIRST_GOOD if was == "bad" else Find.FIRST_BAD
    mixed = quest.options.mix_hosts
    return Stage(quest.name, quest.line, find, known, rows, result, mixed)


def _commits(
    plan: Plan,
    bench: Bench,
    releases: Stage,
    repository: Repository,
    told: Told,
    shown: Shown,
) -> Stage:
    """The commits between the two releases at the boundary, searched in the same way."""
    old, new = releases.result.previous or "", releases.result.build or ""
    name = f"commit-{old}-{new}"
    options = replace(plan.options, find=releases.find, ends_given=True)
    kept = bench.folder / f"{name}.json"
    if kept.is_file():
        line = session.restored(json.loads(kept.read_text(encoding="utf-8"))).line
    else:
        told(f"the commits from {old} to {new}")
        index = None
        if plan.commit_index is not None:
            settings = read_settings()
            index = CommitIndex(
                plan.commit_index,
                lambda: Web(settings, told),
                project=PROJECT,
                variant=plan.variant,
            )
        read = plan.depth.name in READ
        probes = [load(probe) for d in bench.asked.defects for probe in d.probes]
        try:
            line = between(
                repository,
                _end(releases, old),
                _end(releases, new),
                index=index,
                relevant=(lambda paths: members(paths, probes)) if read else None,
            )
        except UntestableError as error:
            # what the releases showed is not lost
            ending = Ending.INFRA if error.temporary else Ending.UNTESTABLE
            result = Result(Kind.NONE, ending, notes=(str(error),))
            return Stage("commit", Line(()), releases.find, (), {}, result)
        store.write_json(kept, session.kept(_quest(plan, name, line, options)))
    return replace(
        _stage(plan, _quest(plan, name, line, options), bench, told, shown), name="commit"
    )


def _end(stage: Stage, build: str) -> End:
    row = row_at(stage, build)
    return End(build, row["commit"] if row else None)
