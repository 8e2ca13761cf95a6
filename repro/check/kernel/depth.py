"""Depth kernel: the build's own Triton kernels with the inputs at the limits of a case.

A kernel is lifted out of the build in one locked child, compiled to PTX in another, and launched in
the emulator in a third process. A defect has its kernel facts in the case file; those of the host
code that decide how the kernel is reached are asked too, in the first child.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import UntestableError
from ...records import to_json
from .. import exposure
from ..cache import Cache, default_folder
from ..defects import Defect, Route, judge
from ..depth import (
    NOWHERE,
    Asked,
    Isolation,
    Opener,
    build_record,
    evidence_record,
    untestable_record,
)
from ..probes import PROBES as SOURCE_PROBES
from ..probes import load as load_source
from ..source import Reading, Source, excerpt, look
from ..source_depth import defaults
from ..tree import Told, Tree
from .compiler import SECONDS as COMPILING
from .compiler import Compiler, NotCompiledError, compiler
from .launching import Ready, Saw, launched
from .lifted import Lifted, NotLiftedError, lifted
from .probe import KernelProbe
from .probes import PROBES, load
from .subject import SignatureChangedError, bind

SECONDS = 120.0
NO_KERNEL = "kernel"
ELSEWHERE = "no kernel of the engine answers it; the source depth does"


@dataclass(frozen=True, slots=True)
class Looked:
    """What one build said: source readings, kernel readings with their findings, isolation."""

    source: Source
    readings: Mapping[str, Reading]
    saw: Mapping[str, Saw]
    isolation: Isolation


class KernelDepth:
    """Asks the kernels of a build. A `Depth`. cache: a folder, the user's by default."""

    name = "kernel"
    looked_at = (
        "the build's own Triton kernels, compiled and run in the emulator (depth kernel), and the "
        "host code that decides how they are reached; not at a running engine"
    )

    def __init__(self, cache: Path | None = None) -> None:
        self._folder = cache
        self._compiler: Compiler | None = None

    def answer(self, spec: str, builds: Opener, asked: Asked) -> dict[str, Any]:
        build = replace(NOWHERE, version=spec)
        defects = judged(asked.defects)
        wanted, sources = names(defects, asked.also)
        if not wanted:
            return untestable_record(build, UntestableError(f"{asked.case.case.id}: {ELSEWHERE}"))
        try:
            made = self._made(asked.told)
            tree = builds.open(spec)
            try:
                build = tree.build
                looked = look_at(tree, made, wanted, sources, asked.seconds or SECONDS)
                notes = list(tree.notes())
            finally:
                tree.close()
        except UntestableError as error:
            return untestable_record(build, error)
        nowhere = Reading(NO_KERNEL, None, "unknown", ELSEWHERE)
        facts = {**looked.source.readings, **looked.readings, NO_KERNEL: nowhere}
        judgement = judge(defects, facts, defaults(looked.source), asked.question)
        rows = [_row(defect, probe, looked) for defect, probe in _asked(defects, wanted, sources)]
        without = [defect.id for defect in asked.defects if not defect.kernel]
        if without:
            notes.append(f"no kernel answers {', '.join(without)}: no part of this verdict")
        return build_record(build, judgement, rows, looked.isolation, notes)

    def _made(self, told: Told) -> Compiler:
        """The compiler, which remembers what it compiled for builds before."""
        if self._compiler is None:
            self._compiler = compiler(Cache(self._folder or default_folder(), told))
        return self._compiler


def look_at(
    tree: Tree, made: Compiler, wanted: Sequence[str], sources: Sequence[str], seconds: float
) -> Looked:
    """Ask probes of kernels, `wanted`, and of source, `sources`. UntestableError where files of the
    build cannot be had; what else cannot be done is a reading of its own, unknown."""
    probes = [load(name) for name in wanted]
    source = look(tree, sources, [p.subject.lift(p.id) for p in probes], seconds=seconds)
    ready: list[Ready] = []
    found: dict[str, Lifted] = {}
    saw: dict[str, Saw] = {}
    for probe in probes:
        try:
            one = lifted(source.lifts[probe.id], source.files)
            found[probe.id] = one
            ready.append(_ready(probe, one, made, seconds))
        except NotLiftedError as error:
            saw[probe.id] = Saw(None, _absent(probe, str(error)))
        except (SignatureChangedError, NotCompiledError) as error:
            saw[probe.id] = Saw(None, f"{found[probe.id].entry}: {error}")
    saw |= launched(ready, seconds)
    readings = {p.id: _reading(p, saw[p.id], found.get(p.id), source.files) for p in probes}
    isolation = Isolation(
        tuple(dict.fromkeys((*source.holds, *made.holds))),
        tuple(dict.fromkeys((*source.fails, *made.fails))),
    )
    return Looked(source, readings, saw, isolation)


def _ready(probe: KernelProbe, one: Lifted, made: Compiler, seconds: float) -> Ready:
    binding = bind(probe.subject, one.parameters)
    compiled = made.compile(one, binding, probe.subject.warps, min(seconds, COMPILING))
    if any(compiled.scratch):
        raise NotCompiledError("it needs scratch memory, which the emulator does not give")
    return Ready(probe, one, binding, compiled)


def judged(defects: Sequence[Defect]) -> list[Defect]:
    """The defects as this depth judges them: by their kernel facts. One without any is open, and
    counts only where it is asked for by name."""
    return [
        replace(defect, routes=defect.kernel)
        if defect.kernel
        else replace(defect, routes=(Route({NO_KERNEL: ()}),), latent=True)
        for defect in defects
    ]


def names(defects: Sequence[Defect], also: Sequence[str]) -> tuple[list[str], list[str]]:
    """(probes of kernels, probes of source) that these defects and what is shown need."""
    asked = [p for d in defects for p in d.probes if p != NO_KERNEL]
    kernels = [p for p in (*asked, *also) if p in PROBES]
    sources = [p for p in (*asked, *exposure.PROBES) if p in SOURCE_PROBES]
    return list(dict.fromkeys(kernels)), list(dict.fromkeys(sources))


def _asked(
    defects: Sequence[Defect], wanted: Sequence[str], sources: Sequence[str]
) -> list[tuple[str | None, str]]:
    """(defect, probe) of every row of evidence; None for what only informs."""
    rows: list[tuple[str | None, str]] = [
        (d.id, p) for d in defects for p in d.probes if p != NO_KERNEL
    ]
    named = {probe for _, probe in rows}
    return rows + [(None, p) for p in (*wanted, *sources) if p not in named]


def _absent(probe: KernelProbe, why: str) -> str:
    return f"{why}: {probe.absent}" if why.startswith("no kernel") else why


def _reading(
    probe: KernelProbe, saw: Saw, found: Lifted | None, files: Mapping[str, bytes]
) -> Reading:
    """Where: the line of the first finding, else that of the kernel."""
    if found is None:
        return Reading(probe.id, saw.value, "unknown", saw.detail)
    path, line = found.path, found.line
    for one in saw.findings:
        if one["source"] and one["source"]["file"] in files:
            path, line = str(one["source"]["file"]), int(one["source"]["line"])
            break
    how = "unknown" if saw.value is None else "kernel"
    return Reading(probe.id, saw.value, how, saw.detail, path, line, excerpt(files[path], line))


def _row(defect: str | None, probe: str, looked: Looked) -> dict[str, Any]:
    if probe in looked.saw:
        known, reading, saw = load(probe), looked.readings[probe], looked.saw[probe]
        meaning = known.values[saw.value] if saw.value is not None else None
        row = evidence_record(defect, known.question, meaning, reading)
        return row | {"findings": to_json(saw.findings), "more": saw.more}
    reading = looked.source.readings[probe]
    asked = load_source(probe)
    meaning = asked.values[reading.value] if isinstance(reading.value, str) else None
    return evidence_record(defect, asked.question, meaning, reading)
