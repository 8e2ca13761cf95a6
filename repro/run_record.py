"""The JSON of a run, specrepro/run@1, from the records. Everything a page shows is in it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from .. import __version__
from .case import Case, LoadedCase, points, shipped_cases
from .case.points import sweep_values
from .hypotheses import Weighed
from .hypotheses_record import hypotheses_record
from .join import join
from .judge import Judgement, as_expected
from .lanes.catalog import CATALOG
from .plan import Plan, Step
from .records import Finding, Kind, Source, Status, TrialResult, to_json

SCHEMA = "specrepro/run@1"
# Where nothing names the finding to lead with: damage before the reads that led to it.
LEADING = (
    Kind.OUT_OF_BOUNDS_WRITE,
    Kind.FOREIGN_WRITE,
    Kind.OVERSIZED_ALLOCATION,
    Kind.OUT_OF_BOUNDS_READ,
    Kind.FOREIGN_READ,
    Kind.ACCEPTANCE_LOSS,
)
PACKAGES = ("numpy", "pydantic", "rich", "typer")


def run_record(
    path: Path,
    started: str,
    seconds: float,
    cases: Sequence[Mapping[str, Any]],
    places: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The whole record of a run. places: nodes and GPUs that its results came from, where that was
    not this process tree and at most one GPU."""
    return {
        "schema": SCHEMA,
        "run": {
            "id": path.name,
            "path": str(path),
            "command": "run",
            "version": __version__,
            "started": started,
            "seconds": round(seconds, 3),
        },
        "environment": environment(),
        "places": list(places),
        "cases": list(cases),
    }


def environment() -> dict[str, Any]:
    """The machine and the packages that took part. No host or user name."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
    }


def case_record(
    case: LoadedCase,
    effective: Case,
    plan: Plan,
    results: Mapping[str, Sequence[TrialResult]],
    judgement: Judgement,
    weighed: Weighed | None = None,
) -> dict[str, Any]:
    """The record of one case; `hypotheses` is None for a case without."""
    trials = []
    for number, step in enumerate(plan.steps):
        for lane in plan.lanes:
            result = results[lane][number]
            agrees = (number, lane) in judgement.agrees
            expected = as_expected(plan, results, number, lane)
            trials.append(_trial(step, lane, result, agrees, expected))
    shown = _shown(plan, results, weighed.survive if weighed else ())
    return {
        "id": case.case.id,
        "sha256": case.sha256,
        "verdict": str(judgement.verdict),
        "cause": str(judgement.cause),
        "reasons": list(judgement.reasons),
        "trials": trials,
        "unobserved": list(judgement.unobserved),
        "title": case.case.title,
        "report": case.case.report,
        "claim": case.case.claim,
        "class": case.case.fault_class,
        "shipped": _shipped(case),
        "lanes": list(plan.lanes),
        "named": dict(points(effective)[0]),
        "sweep": _sweep(effective, plan),
        "shown": shown,
        "join": _join(plan, results, judgement, shown),
        "again": _again(case, shown),
        "hypotheses": hypotheses_record(case.case, weighed) if weighed else None,
        "protocol": list(case.case.protocol),
    }


def _trial(
    step: Step, lane: str, result: TrialResult, agrees: bool, expected: bool
) -> dict[str, Any]:
    return {
        "variant": step.variant,
        "lane": lane,
        "control": step.control,
        "point": dict(step.point),
        "expected": str(step.wanted.status),
        "status": str(result.status),
        "as_expected": expected,
        "stopped": result.stopped,
        "agrees_with_reference": agrees,
        "findings": to_json(result.findings),
        "evidence": to_json(result.evidence),
        "service": to_json(result.service),
        "metrics": to_json(result.metrics),
        "who": result.who,
        "notes": list(result.notes),
        "reason": result.reason,
        "seconds": result.seconds,
    }


def _sweep(case: Case, plan: Plan) -> dict[str, list[Any]]:
    """Parameter -> values, of the sweep as it was run; {} without one."""
    swept: dict[str, list[Any]] = {}
    if not plan.swept:  # a face may differ in a parameter of the sweep
        return swept
    for name, spec in case.sweep.items():
        run = {step.point[name] for step in plan.steps}
        if len(run) > 1:
            swept[name] = [value for value in sweep_values(spec) if value in run]
    return swept


def _shown(
    plan: Plan, results: Mapping[str, Sequence[TrialResult]], survive: Sequence[str]
) -> dict[str, Any] | None:
    """The finding a page leads with: the expected one, of the lane that executes kernels.

    Of a case with hypotheses: the first of a survivor.
    """
    for lane in sorted(plan.lanes, key=lambda name: not CATALOG[name].kernels):
        for number, step in enumerate(plan.steps):
            result = results[lane][number]
            asked = step.wanted.status is Status.FAULT or step.variant in survive
            if asked and result.findings:
                finding = _leading(step, result.findings)
                return {
                    "variant": step.variant,
                    "lane": lane,
                    "point": dict(step.point),
                    "finding": to_json(finding),
                    "who": result.who,
                    "notes": list(result.notes),
                    "tensor": result.tensors.get(finding.tensor or ""),
                    "excerpt": excerpt(finding.source),
                }
    return None


def _join(
    plan: Plan,
    results: Mapping[str, Sequence[TrialResult]],
    judgement: Judgement,
    shown: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """What every instrument said of the shown fault; None where nothing ran on a device."""
    if shown is None:
        return None
    for number, step in enumerate(plan.steps):
        if (step.variant, dict(step.point)) != (shown["variant"], shown["point"]) or step.control:
            continue
        found = {lane: results[lane][number] for lane in plan.lanes}
        ran = [lane for lane, one in found.items() if one.status is not Status.SKIPPED]
        if not any(CATALOG[lane].device for lane in ran):
            return None
        joined = join(found, [lane for at, lane in judgement.agrees if at == number])
        return {"variant": step.variant, "point": dict(step.point), **to_json(joined)}
    return None


def _again(case: LoadedCase, shown: Mapping[str, Any] | None) -> list[str] | None:
    """The words of a command that brings the shown fault back by itself; None without one."""
    if shown is None:
        return None
    written = points(case.case)[0]
    changed = {k: v for k, v in shown["point"].items() if v != written[k]}
    name = case.case.id if _shipped(case) else str(case.path)
    words = ["specrepro", "run", name, "--variant", shown["variant"]]
    for key, value in changed.items():
        words += ["--set", f"{key}={value}"]
    return words


def _shipped(case: LoadedCase) -> bool:
    """Whether the file says what the shipped case of that id says, wherever it was read from."""
    for path in shipped_cases():
        if path.stem == case.case.id:
            return hashlib.sha256(path.read_bytes()).hexdigest() == case.sha256
    return False


def _leading(step: Step, findings: Sequence[Finding]) -> Finding:
    for literal in step.wanted.literal:
        for finding in findings:
            first = finding.elements[0] if finding.elements else None
            if finding.kind == literal["kind"] and first == literal.get("first_element", first):
                return finding
    kinds = {wanted.kind for wanted in step.wanted.predicted}
    expected = [f for f in findings if f.kind in kinds] or list(findings)
    return min(expected, key=lambda f: LEADING.index(f.kind) if f.kind in LEADING else len(LEADING))


def excerpt(source: Source | None, around: int = 1) -> list[tuple[int, str]]:
    """(line number, text) of a kernel's source around a line; [] where it is not ours to read."""
    if source is None or ".." in source.file or not source.file.startswith("kernels/"):
        return []
    file = files("specrepro").joinpath(*source.file.split("/"))
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    first = max(1, source.line - around)
    last = min(len(lines), source.line + around)
    return [(number, lines[number - 1]) for number in range(first, last + 1)]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
