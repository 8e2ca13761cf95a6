"""What every depth of `check` has in common: what it is asked, and the record of a build it gives.

A depth is a door of its own: it alone knows how a build is had and questioned. `survey` goes
through builds and knows of none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..case import LoadedCase
from ..errors import UntestableError
from ..records import to_json
from .defects import BuildVerdict, Defect, Judgement, Question
from .source import Reading
from .tree import Build, Tree

Told = Callable[[str], None]


class Opener(Protocol):
    """Gives the build that a word names; `Builds` is one."""

    def open(self, spec: str) -> Tree: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of every build of a check. seconds: how long one build may take, None for what
    the depth allows by itself. told: takes one line for a person about what takes long. folder: of
    the run, for what a depth wants to be read later."""

    case: LoadedCase
    defects: Sequence[Defect]
    also: Sequence[str]
    question: Question
    seconds: float | None
    told: Told
    folder: Path


class Depth(Protocol):
    """One way to question a build. looked_at: what its verdict is about, in one line."""

    @property
    def name(self) -> str: ...

    @property
    def looked_at(self) -> str: ...

    def answer(self, spec: str, builds: Opener, asked: Asked) -> dict[str, Any]:
        """The record of the build that `spec` names, as `build_record` makes it. A depth that has
        to prepare a build before it can be questioned adds `setup_seconds`, what that took.

        UntestableError for a build that cannot be had at all; one that was had and could not be
        questioned has a record of its own, `untestable_record`.
        """


@dataclass(frozen=True, slots=True)
class Isolation:
    """What kept a build's code in, and what could not be had of that and why."""

    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()


NOWHERE = Build("unknown", None, None, None, "unknown")


def build_record(
    build: Build,
    judgement: Judgement,
    evidence: Sequence[Mapping[str, Any]],
    isolation: Isolation,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """The record of one build, but for the seconds it took. evidence: of `evidence_record`."""
    return {
        **_build(build),
        "verdict": str(judgement.verdict),
        "exposure": to_json(judgement.exposure),
        "evidence": [dict(row) for row in evidence],
        "reasons": list(judgement.reasons),
        "defects": to_json(judgement.standings),
        "isolation": {"holds": list(isolation.holds), "fails": list(isolation.fails)},
        "notes": list(notes),
    }


def untestable_record(build: Build, error: UntestableError) -> dict[str, Any]:
    """The record of a build that could not be questioned. temporary: it may be answered later."""
    return {
        **_build(build),
        "verdict": str(BuildVerdict.UNTESTABLE),
        "temporary": error.temporary,
        "exposure": [],
        "evidence": [],
        "reasons": [str(error)] + ([error.hint] if error.hint else []),
        "defects": [],
        "isolation": {"holds": [], "fails": []},
        "notes": [],
    }


def evidence_record(
    defect: str | None, question: str, meaning: str | None, reading: Reading
) -> dict[str, Any]:
    """One row of evidence. defect: None for what only informs. question, meaning: of the probe and
    of its answer, in words."""
    return {
        "defect": defect,
        "probe": reading.probe,
        "value": to_json(reading.value),
        "where": f"{reading.path}:{reading.line}" if reading.path else None,
        "how": reading.how,
        "question": question,
        "meaning": meaning,
        "detail": reading.detail,
        "excerpt": [list(line) for line in reading.excerpt],
    }


def _build(build: Build) -> dict[str, Any]:
    return {
        "version": build.version,
        "file": build.file,
        "sha256": build.sha256,
        "commit": build.commit,
        "origin": build.origin,
    }
