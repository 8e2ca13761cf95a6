"""The part of a case's record that says what its hypotheses came to. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .hypotheses import Cell, TrialOutcome, Weighed
from .records import to_json

if TYPE_CHECKING:
    from .case import Case


def hypotheses_record(case: Case, weighed: Weighed) -> dict[str, Any]:
    """`matrix`, `out`, `survive`, `undecided`, `next`, and the controls that they name."""
    ran = list(dict.fromkeys(cell.hypothesis for cell in weighed.cells))
    about = {hypothesis.variant: hypothesis for hypothesis in case.hypotheses}
    controls = {control.id: control for control in case.controls}
    return {
        "controls": [
            {
                "id": control.id,
                "title": control.title,
                "levers": list(control.levers),
                "reported": control.reported.model_dump() if control.reported else None,
                "facts": control.facts.model_dump(mode="json") if control.facts else None,
            }
            for control in case.controls
        ],
        "matrix": [
            {
                "variant": name,
                "title": about[name].title,
                "needs": about[name].needs,
                "cells": [_cell(cell) for cell in weighed.cells if cell.hypothesis == name],
            }
            for name in ran
        ],
        "out": [{"variant": name, "by": list(by)} for name, by in weighed.out.items()],
        "survive": list(weighed.survive),
        "undecided": list(weighed.undecided),
        "next": [
            {
                "control": proposal.control,
                "title": controls[proposal.control].title,
                "command": controls[proposal.control].command,
                "minutes": controls[proposal.control].minutes,
                "bits": round(proposal.bits, 3),
                "outcomes": {name: _outcome(o) for name, o in proposal.outcomes.items()},
            }
            for proposal in weighed.next
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "control": cell.control,
        "outcome": _outcome(cell.outcome),
        "meets": cell.meets,
        "lane": cell.lane,
        "contradicts": cell.contradicts,
    }


def _outcome(outcome: TrialOutcome | None) -> dict[str, Any] | None:
    plain: dict[str, Any] | None = to_json(outcome)
    return plain
