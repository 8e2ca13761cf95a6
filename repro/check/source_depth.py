"""Depth source: a build's own functions, executed in the sandbox, judged by the facts of a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import UntestableError
from . import exposure
from .defects import Defect, judge
from .depth import (
    NOWHERE,
    Asked,
    Isolation,
    Opener,
    build_record,
    evidence_record,
    untestable_record,
)
from .probes import PROBES, load
from .sandbox import SECONDS
from .source import Reading, Source, look


class SourceDepth:
    """Asks the probes of a case. A `Depth`."""

    name = "source"
    looked_at = "the code (depth source); not at kernels, not at a running engine"

    def answer(self, spec: str, builds: Opener, asked: Asked) -> dict[str, Any]:
        build = replace(NOWHERE, version=spec)
        try:
            tree = builds.open(spec)
            try:
                build = tree.build
                wanted = probes(asked.defects, asked.also)
                source = look(tree, wanted, seconds=asked.seconds or SECONDS)
                notes = list(tree.notes())
            finally:
                tree.close()
        except UntestableError as error:
            return untestable_record(build, error)
        judgement = judge(asked.defects, source.readings, defaults(source), asked.question)
        rows = [
            _evidence(defect, source.readings[probe])
            for defect, probe in _asked(asked.defects, asked.also)
        ]
        return build_record(build, judgement, rows, Isolation(source.holds, source.fails), notes)


def probes(defects: Sequence[Defect], also: Sequence[str]) -> list[str]:
    """Every probe that a check needs: of the defects, those only shown, and of defaults."""
    asked = [probe for defect in defects for probe in defect.probes]
    return list(dict.fromkeys((*asked, *shown(also), *exposure.PROBES)))


def shown(also: Sequence[str]) -> list[str]:
    """Of what a case wants shown, what is asked of source."""
    return [probe for probe in also if probe in PROBES]


def defaults(source: Source) -> dict[str, Mapping[str, str] | None]:
    """The tables of defaults of a build, as `exposure` asks for them."""
    return {
        name: value if isinstance(value := source.readings[name].value, Mapping) else None
        for name in exposure.PROBES
    }


def _asked(defects: Sequence[Defect], also: Sequence[str]) -> Iterator[tuple[str | None, str]]:
    """(defect, probe) of every row of evidence; None for what only informs."""
    for defect in defects:
        for probe in defect.probes:
            yield defect.id, probe
    for probe in (*shown(also), *exposure.PROBES):
        yield None, probe


def _evidence(defect: str | None, reading: Reading) -> dict[str, Any]:
    probe = load(reading.probe)
    meaning = probe.values[reading.value] if isinstance(reading.value, str) else None
    return evidence_record(defect, probe.question, meaning, reading)
