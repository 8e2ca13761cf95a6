"""`check`, build after build: look, judge, record. The record is all that a page is made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ... import __version__
from .. import store
from ..case import LoadedCase
from ..errors import Exit, UntestableError, UsageError
from ..escape import quoted
from ..records import to_json
from ..run_record import environment
from ..scenarios.declare import nearest
from . import exposure
from .defects import BuildVerdict, Defect, Judgement, Question, judge
from .probes import load
from .sandbox import SECONDS
from .source import Reading, Source, look
from .tree import Build, Tree

SCHEMA = "specrepro/check@1"
DEPTH = "source"
STATUS = {
    BuildVerdict.AFFECTED: Exit.FAULT,
    BuildVerdict.NOT_AFFECTED: Exit.OK,
    BuildVerdict.UNTESTABLE: Exit.UNTESTABLE,
}
Told = Callable[[str], None]


class Opener(Protocol):
    """Gives the build that a word names; `Builds` is one."""

    def open(self, spec: str) -> Tree: ...


@dataclass(frozen=True, slots=True)
class Report:
    """The record of a run, specrepro/check@1, and the status it ends with."""

    record: dict[str, Any]
    status: Exit


def questions(
    case: LoadedCase, defects: Sequence[str], fixed: Mapping[str, str], default_only: bool
) -> Question:
    """What the options of a command line ask of a case; UsageError where they do not fit it."""
    if case.case.check is None:
        raise UsageError(f"{case.case.id} does not say which defects to look for in a build")
    known = {d.id: d for d in case.case.check.records()}
    for name in defects:
        if name not in known:
            raise UsageError(
                f"unknown defect {quoted(name)}; {case.case.id} has {', '.join(known)}",
                hint=nearest(name, known),
            )
    return Question(tuple(defects), exposure.parse(fixed), default_only)


def check(
    case: LoadedCase,
    specs: Sequence[str],
    builds: Opener,
    question: Question,
    folder: Path,
    *,
    seconds: float = SECONDS,
    told: Told = lambda line: None,
) -> Report:
    """Check every build of `specs` and store the run in `folder`."""
    if case.case.check is None:
        raise UsageError(f"{case.case.id} does not say which defects to look for in a build")
    began = time.monotonic()
    asked = {
        "case": case.case.id,
        "depth": DEPTH,
        "builds": list(specs),
        "question": _question(question),
    }
    path = store.create(folder, "check", asked)
    started = str(store.request(path)["started"])
    defects = case.case.check.records()
    also = case.case.check.also
    rows = []
    for number, spec in enumerate(specs, 1):
        told(f"{spec} ({number} of {len(specs)})")
        rows.append(_build(spec, builds, defects, also, question, seconds))
    record = {
        "schema": SCHEMA,
        "run": {
            "id": path.name,
            "path": str(path),
            "command": "check",
            "version": __version__,
            "started": started,
            "seconds": round(time.monotonic() - began, 3),
        },
        "environment": environment(),
        "case": case.case.id,
        "sha256": case.sha256,
        "title": case.case.title,
        "report": case.case.report,
        "cause": str(case.case.cause),
        "depth": DEPTH,
        "question": _question(question),
        "builds": rows,
    }
    store.finish(path, record)
    return Report(record, status([BuildVerdict(row["verdict"]) for row in rows]))


def status(verdicts: Sequence[BuildVerdict]) -> Exit:
    """Of a range: any AFFECTED is 1, else any UNTESTABLE (or no build at all) is 125."""
    found = {STATUS[verdict] for verdict in verdicts} or {Exit.UNTESTABLE}
    return next(s for s in (Exit.FAULT, Exit.UNTESTABLE, Exit.OK) if s in found)


def _question(question: Question) -> dict[str, Any]:
    return {
        "defects": list(question.defects),
        "with": dict(question.fixed),
        "default_only": question.default_only,
    }


def _build(
    spec: str,
    builds: Opener,
    defects: Sequence[Defect],
    also: Sequence[str],
    question: Question,
    seconds: float,
) -> dict[str, Any]:
    began = time.monotonic()
    build = Build(spec, None, None, None, "unknown")
    try:
        tree = builds.open(spec)
        try:
            build = tree.build
            source = look(tree, probes(defects, also), seconds=seconds)
            notes = list(tree.notes())
        finally:
            tree.close()
    except UntestableError as error:
        reasons = [str(error)] + ([error.hint] if error.hint else [])
        row = build_record(build, None, None, defects, also)
        return row | {"reasons": reasons, "seconds": round(time.monotonic() - began, 3)}
    judgement = judge(defects, source.readings, defaults(source), question)
    row = build_record(build, source, judgement, defects, also)
    return row | {"notes": notes, "seconds": round(time.monotonic() - began, 3)}


def probes(defects: Sequence[Defect], also: Sequence[str]) -> list[str]:
    """Every probe that a check needs: of the defects, those only shown, and of defaults."""
    asked = [probe for defect in defects for probe in defect.probes]
    return list(dict.fromkeys((*asked, *also, *exposure.PROBES)))


def defaults(source: Source) -> dict[str, Mapping[str, str] | None]:
    """The tables of defaults of a build, as `exposure` asks for them."""
    return {
        name: value if isinstance(value := source.readings[name].value, Mapping) else None
        for name in exposure.PROBES
    }


def build_record(
    build: Build,
    source: Source | None,
    judgement: Judgement | None,
    defects: Sequence[Defect],
    also: Sequence[str],
) -> dict[str, Any]:
    """The record of one build; `source` and `judgement` are None where it could not be had."""
    rows: list[dict[str, Any]] = []
    if source is not None:
        rows = [
            _evidence(defect, source.readings[probe]) for defect, probe in _asked(defects, also)
        ]
    verdict = BuildVerdict.UNTESTABLE if judgement is None else judgement.verdict
    return {
        "version": build.version,
        "file": build.file,
        "sha256": build.sha256,
        "commit": build.commit,
        "origin": build.origin,
        "verdict": str(verdict),
        "exposure": [] if judgement is None else to_json(judgement.exposure),
        "evidence": rows,
        "reasons": [] if judgement is None else list(judgement.reasons),
        "defects": [] if judgement is None else to_json(judgement.standings),
        "isolation": {
            "holds": [] if source is None else list(source.holds),
            "fails": [] if source is None else list(source.fails),
        },
        "notes": [],
    }


def _asked(defects: Sequence[Defect], also: Sequence[str]) -> Iterator[tuple[str | None, str]]:
    """(defect, probe) of every row of evidence; None for what only informs."""
    for defect in defects:
        for probe in defect.probes:
            yield defect.id, probe
    for probe in (*also, *exposure.PROBES):
        yield None, probe


def _evidence(defect: str | None, reading: Reading) -> dict[str, Any]:
    probe = load(reading.probe)
    where = f"{reading.path}:{reading.line}" if reading.path else None
    meaning = probe.values[reading.value] if isinstance(reading.value, str) else None
    return {
        "defect": defect,
        "probe": reading.probe,
        "value": to_json(reading.value),
        "where": where,
        "how": reading.how,
        "question": probe.question,
        "meaning": meaning,
        "detail": reading.detail,
        "excerpt": [list(line) for line in reading.excerpt],
    }
