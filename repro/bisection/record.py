"""The record of a bisection, specrepro/bisect@1. Everything a page shows is in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Exit
from ..records import to_json
from .candidates import Line
from .groups import Group, counted, deciding, left_out
from .question import Ending, Find, Kind, Result
from .timeline import flips, states
from .verdicts import (
    Bad,
    Event,
    Good,
    Infra,
    Mark,
    Observation,
    Other,
    Untestable,
    Verdict,
    effective,
)

SCHEMA = "specrepro/bisect@1"
COPIED = ("version", "file", "sha256", "commit", "injected", "tried")  # from the record of a trial


@dataclass(frozen=True, slots=True)
class Stage:
    """One line that was searched. name: `release` or `commit`. rows: log → the kept record of the
    trial, where it is there. mixed: trials of different GPUs or drivers count together."""

    name: str
    line: Line
    find: Find
    events: Sequence[Event]
    rows: Mapping[str, Mapping[str, Any]]
    result: Result
    mixed: bool = False

    @property
    def counted(self) -> list[Event]:
        """The events that its result follows from."""
        return counted(self.events, mixed=self.mixed)

    @property
    def group(self) -> Group | None:
        """Where those ran, None where that makes no difference or nothing ran."""
        return None if self.mixed else deciding(self.events)


def status(stages: Sequence[Stage]) -> Exit:
    """0: the boundary is confirmed, in the last line that was searched. 125: the ends cannot be
    tested, or time is spent without a result. 1: else."""
    result = stages[-1].result
    if result.kind in {Kind.FIRST_BAD, Kind.FIRST_GOOD}:
        return Exit.OK
    if result.kind is Kind.NARROWED:
        return Exit.FAULT
    if len(stages) > 1:
        return Exit.FAULT  # the releases are known, the commit is not
    state = states(stages[0].line.builds, stages[0].counted)
    ends = {state[stages[0].line.builds[0]], state[stages[0].line.builds[-1]]}
    undecided = set(state.values()) == {"unknown"} if result.ending is not Ending.ENDS else True
    if result.ending in {Ending.BUDGET, Ending.INFRA} or (undecided and "unknown" in ends):
        return Exit.UNTESTABLE
    return Exit.FAULT


def bisect_record(
    about: Mapping[str, Any],
    stages: Sequence[Stage],
    boundary: Mapping[str, Any] | None,
    *,
    scan: bool,
    more: Sequence[Stage] = (),
) -> dict[str, Any]:
    """The whole record. about: run, environment, case and what was asked. more: trials besides
    those of the lines. The result is that of the
    last stage which has one, so that a boundary between releases is not lost where the commits
    between them tell nothing."""
    told = [stage for stage in stages if stage.result.kind is not Kind.NONE] or [stages[0]]
    return {
        "schema": SCHEMA,
        **about,
        "find": str(told[-1].find),
        "result": result_record(told[-1].result),
        "stages": [
            {
                "name": stage.name,
                "find": str(stage.find),
                "candidates": [{"build": c.build, "note": c.note} for c in stage.line.candidates],
                "unavailable": dict(stage.line.unavailable),
                "left_out": list(stage.line.left_out),
                "group": str(stage.group) if stage.group is not None else None,
                "timeline": _timeline(stage, scan=scan),
                "result": result_record(stage.result),
            }
            for stage in stages
        ],
        "trials": [row for stage in (*stages, *more) for row in _trials(stage)],
        "boundary": None if boundary is None else dict(boundary),
    }


def result_record(result: Result) -> dict[str, Any]:
    """A result as JSON; candidates are the builds that may be the boundary."""
    record: dict[str, Any] = to_json(result)
    return record


def _timeline(stage: Stage, *, scan: bool) -> dict[str, Any]:
    state = states(stage.line.builds, stage.counted)
    return {
        "complete": scan,
        "builds": [{"build": build, "state": said} for build, said in state.items()],
        "changes": [
            {
                "find": str(flip.find),
                "previous": flip.previous,
                "build": flip.build,
                "between": list(flip.between),
            }
            for flip in flips(state)
        ],
    }


def _trials(stage: Stage) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for event in effective(list(stage.events)):
        if isinstance(event, Mark):
            rows.append(_row(stage.name, event.build, 0, str(event.verdict), by="person"))
        elif isinstance(event, Observation):
            kept = stage.rows.get(event.log, {})
            rows.append(
                _row(stage.name, event.build, event.number, KINDS[type(event.verdict)])
                | {
                    "signature": (
                        event.verdict.signature if isinstance(event.verdict, Bad | Other) else None
                    ),
                    "reasons": _reasons(event.verdict, kept),
                    "seconds": round(event.seconds + event.setup, 3),
                    "log": event.log or None,
                    "place": to_json(event.place),
                    "not_counted": _not_counted(stage, event),
                    **{k: kept.get(k) for k in COPIED},
                }
            )
    return rows


KINDS: Mapping[type[Verdict], str] = {
    Bad: "bad",
    Good: "good",
    Other: "other",
    Untestable: "untestable",
    Infra: "infra",
}


def _row(stage: str, build: str, number: int, verdict: str, by: str = "trial") -> dict[str, Any]:
    return {
        "stage": stage,
        "build": build,
        "number": number,
        "verdict": verdict,
        "by": by,
        "signature": None,
        "reasons": [],
        "seconds": 0.0,
        "log": None,
        "place": None,
        "not_counted": None,
        "version": None,
        "file": None,
        "sha256": None,
        "commit": None,
        "injected": None,
        "tried": None,
    }


def _not_counted(stage: Stage, event: Observation) -> str | None:
    """Why a trial is listed and weighs nothing; None for one that counts."""
    return (stage.group is not None and left_out(event, stage.group)) or None


def _reasons(verdict: Verdict, row: Mapping[str, Any]) -> list[str]:
    if isinstance(verdict, Untestable | Infra):
        return [verdict.reason]
    return [str(reason) for reason in row.get("reasons", ())]
