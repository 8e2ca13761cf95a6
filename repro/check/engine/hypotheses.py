"""The hypotheses of a case beside what an engine did: which of them does this build show?

Every experiment with a point of the scenario (`models` of a case file) is played in the model too,
for each hypothesis, by lane reference; the experiments of the report are played with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...case import LoadedCase
from ...hypotheses import RIGHT
from ...measured import Measured, measured_cells, standing
from ...run import Selection, run
from .answer import Sign
from .declare import ORACLES
from .experiments import Done

LANE = "reference"
FOLDER = "model"


def measured(done: Sequence[Done]) -> list[Measured]:
    """What a build's experiments say of hypotheses. A change made on purpose is not the build's."""
    return [
        Measured(
            d.experiment.id,
            d.experiment.title,
            d.experiment.models,
            {
                Sign.SEEN: ORACLES[d.experiment.spec.oracle].outcome or None,
                Sign.NOT_SEEN: RIGHT,
            }.get(d.answer.sign),
            d.answer.reason,
        )
        for d in done
        if d.experiment.models and not d.experiment.change
    ]


def modelled(case: LoadedCase, experiments: Sequence[Measured], folder: Path) -> Mapping[str, Any]:
    """The hypotheses part of a run of the case's model, under the experiments of its report and
    under these. Kept in `folder`."""
    from ...case.model import Control

    controls = [c for c in case.case.controls if c.reported or c.facts]
    controls += [
        Control.model_construct(
            id=e.id,
            title=e.title,
            sets=dict(e.sets),
            reported=None,
            facts=None,
            levers=(),
            command=None,
            minutes=0,
        )
        for e in experiments
    ]
    changed = case.case.model_copy(update={"controls": tuple(controls)})
    names = tuple(hypothesis.variant for hypothesis in case.case.hypotheses)
    report = run(
        [replace(case, case=changed)], Selection(variants=names, lanes=(LANE,)), folder / FOLDER
    )
    found: Mapping[str, Any] = report.record["cases"][0]["hypotheses"]
    return found


def record(case: LoadedCase, done: Sequence[Done], folder: Path) -> dict[str, Any] | None:
    """The hypotheses of a case's record of a build; None where no experiment says anything of them.

    `report` is what the report's experiments leave of a hypothesis, `build` what these do.
    """
    experiments = measured(done)
    if not experiments or not case.case.hypotheses:
        return None
    said = modelled(case, experiments, folder)
    out = {entry["variant"]: entry["by"] for entry in said["out"]}
    rows = []
    for row in said["matrix"]:
        outcomes = {
            cell["control"]: cell["outcome"]["kind"] if cell["outcome"] else None
            for cell in row["cells"]
        }
        cells = measured_cells(experiments, outcomes)
        name = row["variant"]
        survives = "survives" if name in said["survive"] else "undecided"
        rows.append(
            {
                "variant": name,
                "title": row["title"],
                "needs": row["needs"],
                "report": "out" if name in out else survives,
                "by": list(out.get(name, ())),
                "build": str(standing(cells)),
                "cells": [
                    {
                        "experiment": cell.experiment,
                        "modelled": cell.modelled,
                        "measured": cell.measured,
                        "tells": str(cell.tells),
                    }
                    for cell in cells
                ],
            }
        )
    return {
        "lane": LANE,
        "experiments": [
            {
                "id": e.id,
                "title": e.title,
                "sets": dict(e.sets),
                "measured": e.outcome,
                "says": e.says,
            }
            for e in experiments
        ],
        "matrix": rows,
    }
