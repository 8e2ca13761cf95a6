"""The builds at a boundary, read again: what their trials said, and the code of their defects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..check.depth import evidence_record
from ..check.exposure import PROBES
from ..check.probes import load
from ..check.source import look, members
from ..check.tree import Tree
from ..errors import UntestableError
from .boundary import Side
from .record import Stage
from .trials import Bench
from .verdicts import Infra, Observation


def row_at(stage: Stage, build: str) -> Mapping[str, Any] | None:
    """The record of the latest trial of a build that says something of it."""
    for event in reversed(stage.counted):
        if isinstance(event, Observation) and event.build == build and event.log in stage.rows:
            if isinstance(event.verdict, Infra):
                continue
            return stage.rows[event.log]
    return None


def side_of(bench: Bench, stage: Stage, build: str) -> Side:
    """A build at the boundary: its files are read again, from the cache where it has them."""
    row = row_at(stage, build)
    question = bench.asked.question
    counted = [
        d for d in bench.asked.defects
        if (d.id in question.defects if question.defects else not d.latent)
    ]  # fmt: skip
    probes = [load(probe) for defect in counted for probe in defect.probes]
    candidate = next(c for c in stage.line.candidates if c.build == build)
    try:
        tree = bench.builds.open(candidate.word)
        try:
            names = members(tree.names(), probes)
            about = [n for n in tree.find("METADATA") if n.endswith(".dist-info/METADATA")]
            tree.fetch([*names, *about])
            files = {name: tree.read(name) for name in names}
            metadata = tree.read(about[0]) if len(about) == 1 else None
            return Side(build, row, files, metadata, _defaults(tree, row))
        finally:
            tree.close()
    except UntestableError:
        # `boundary` says that the files could not be read
        return Side(build, row)


def _defaults(tree: Tree, row: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """What the code says of a build's defaults, where its trial did not ask it: an engine that was
    started tells of the settings it came up with alone."""
    if row is None or {one["probe"] for one in row["evidence"]} & set(PROBES):
        return []
    readings = look(tree, PROBES).readings
    return [evidence_record(None, "", None, reading) for reading in readings.values()]
