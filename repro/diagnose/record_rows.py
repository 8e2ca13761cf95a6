"""Rows of the record of a diagnosis: classes, statements, questions, experiments, lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import conditions
from .advise import Asked, Proposal
from .facts import Reading
from .match import Ranked, Statement
from .rules import FaultClass, Fix
from .situation import How, Ref, Situation


def ranked_row(reading: Reading, ranked: Ranked, situation: Situation) -> dict[str, Any]:
    one = ranked.fault_class
    fixes = [fix for fix in one.fixes if not _has(fix, situation)]
    return {
        "id": one.id,
        "number": one.number,
        "title": one.title,
        "cause": one.cause,
        "standing": str(ranked.standing),
        "score": ranked.score,
        "explains": list(one.explains),
        "for": [statement_row(reading, statement) for statement in ranked.pro],
        "against": [statement_row(reading, statement) for statement in ranked.contra],
        "unmet": list(ranked.unmet),
        "fixes": [{"of": fix.of, "first": fix.first, "says": fix.says} for fix in fixes],
    }


def _has(fix: Fix, situation: Situation) -> bool:
    """Whether what runs has a fix already, by its version; then it is no way out."""
    name = "release" if fix.of == situation.value("engine") else fix.of
    seen = situation.get(name) if name and fix.first else None
    if seen is None or seen.how is How.CLAIMED:
        return False
    return conditions.holds({str(name): f">={fix.first}"}, situation) is True


def statement_row(reading: Reading, statement: Statement) -> dict[str, Any]:
    return {
        "text": statement.text,
        "weight": statement.weight,
        "how": str(statement.how),
        "lines": lines_of(reading, statement.refs),
    }


def asked_row(asked: Asked) -> dict[str, Any]:
    question = asked.question
    return {
        "id": question.id,
        "ask": question.ask,
        "how": question.how,
        "classes": list(asked.classes),
    }


def proposal_row(proposal: Proposal) -> dict[str, Any]:
    experiment = proposal.experiment
    return {
        "id": experiment.id,
        "title": experiment.title,
        "command": proposal.command,
        "ask": proposal.ask,
        "question": experiment.question,
        "bits": proposal.bits,
        "minutes": proposal.minutes,
        "root": experiment.root,
        "separates": list(proposal.separates),
    }


def case_row(one: FaultClass) -> dict[str, Any]:
    return {"class": one.id, "case": one.case}


def lines_of(reading: Reading, refs: Iterable[Ref]) -> list[dict[str, Any]]:
    """Lines as rows: `source` as in the list of sources, `at` as short as it is unmistakable."""
    return [
        {
            "source": name_of(reading, ref.source),
            "at": _at(reading, ref.source),
            "line": ref.line,
        }
        for ref in refs
    ]


def _at(reading: Reading, index: int) -> str:
    name = name_of(reading, index)
    short = name.rpartition("/")[2]
    others = {source.name for source in reading.sources if source.name != name}
    return name if any(other.rpartition("/")[2] == short for other in others) else short


def name_of(reading: Reading, index: int) -> str:
    return reading.sources[index].name if index < len(reading.sources) else "?"
