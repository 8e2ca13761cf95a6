"""`check`, build after build: look, judge, record. The record is all that a page is made of."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ... import __version__
from .. import store
from ..case import LoadedCase
from ..errors import Exit, NoRoomError, UntestableError, UsageError
from ..escape import quoted
from ..run_record import environment
from ..scenarios.declare import nearest
from . import exposure
from .defects import BuildVerdict, Question
from .depth import NOWHERE, Asked, Depth, Opener, Told, untestable_record

SCHEMA = "specrepro/check@1"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
STATUS = {
    BuildVerdict.AFFECTED: Exit.FAULT,
    BuildVerdict.NOT_AFFECTED: Exit.OK,
    BuildVerdict.UNTESTABLE: Exit.UNTESTABLE,
}


@dataclass(frozen=True, slots=True)
class Report:
    """The record of a run, specrepro/check@1, and the status it ends with."""

    record: dict[str, Any]
    status: Exit


# The records of builds in their order, from what each is asked.
GoneThrough = Callable[[Sequence[str], Asked], list[dict[str, Any]]]


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
    depth: Depth,
    *,
    seconds: float | None = None,
    told: Told = lambda line: None,
    apart: GoneThrough | None = None,
) -> Report:
    """Check every build of `specs` at one depth and store the run in `folder`.

    apart: goes through the builds elsewhere than in this process, one after the other.
    """
    if case.case.check is None:
        raise UsageError(f"{case.case.id} does not say which defects to look for in a build")
    began = time.monotonic()
    asked = {
        "case": case.case.id,
        "depth": depth.name,
        "builds": list(specs),
        "question": _question(question),
    }
    path = store.create(folder, "check", asked)
    started = str(store.request(path)["started"])
    check_part = case.case.check
    to_ask = Asked(case, check_part.records(), check_part.also, question, seconds, told, path)
    try:
        rows = apart(specs, to_ask) if apart else list(_rows(specs, builds, depth, to_ask))
    except UsageError:
        store.discard(path)  # what cannot be asked is no run that was cut off
        raise
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
        "depth": depth.name,
        "looked_at": depth.looked_at,
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


def _rows(
    specs: Sequence[str], builds: Opener, depth: Depth, asked: Asked
) -> Iterator[dict[str, Any]]:
    for number, spec in enumerate(specs, 1):
        asked.told(f"{spec} ({number} of {len(specs)})")
        yield row(spec, builds, depth, asked)


def row(spec: str, builds: Opener, depth: Depth, asked: Asked) -> dict[str, Any]:
    """The record of one build, with the seconds it took. UsageError where what is asked does not
    fit the case."""
    began = time.monotonic()
    try:
        found = depth.answer(spec, builds, asked)
    except UntestableError as error:
        found = untestable_record(replace(NOWHERE, version=spec), error)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        where = f" {quoted(str(error.filename))}" if error.filename else ""
        full = NoRoomError(
            f"what a child needs cannot be written{where}: {error.strerror}",
            hint="TMPDIR names a folder with room",
        )
        found = untestable_record(replace(NOWHERE, version=spec), full)
    return found | {"seconds": round(time.monotonic() - began, 3)}
