"""What must hold in a case beyond its shape: its parts fit each other and the scenario."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from ..escape import quoted
from ..records import Scalar
from ..scenarios.declare import Declaration, Parameter, nearest
from . import check, engine
from .model import Case, Expectation
from .points import (
    MAX_POINTS,
    named_point,
    settings,
    sweep_size,
    sweep_values,
    swept,
    told,
    when_points,
    when_size,
)
from .source import Place, Problem


def problems(case: Case, scenarios: Mapping[str, Declaration]) -> list[Problem]:
    """Everything wrong with `case`.

    Contradictions are looked for where all values are allowed: at the named point and the controls,
    then at the points that a `when` describes, then in the sweep.
    """
    if case.scenario not in scenarios:
        return [_unknown(("scenario",), "scenario", case.scenario, scenarios)]
    declaration = scenarios[case.scenario]
    found = [
        *_values(("params",), case.params, declaration.PARAMETERS, "parameter"),
        *_sweep(case, declaration.PARAMETERS),
        *_variants(case, declaration.SETTINGS),
        *_expectations(case, declaration),
        *_owners(case, declaration.UNITS),
        *_lanes(case),
        *_hypotheses(case),
        *_controls(case, declaration.PARAMETERS),
        *_models(case, declaration.PARAMETERS),
        *(check.problems(case.check) if case.check else ()),
    ]
    for contradictions in (_contradictions, _contradicting_faces, _contradicting_sweep):
        found = found or list(contradictions(case, declaration))
    return found


@cache
def _ops() -> tuple[str, ...]:
    """The ops there are: one folder each."""
    folder = files(__package__.partition(".")[0]) / "kernels"
    return tuple(
        sorted(op.name for op in folder.iterdir() if op.joinpath("reference.py").is_file())
    )


def _unknown(place: Place, what: str, name: str, known: Mapping[str, object]) -> Problem:
    message = f"unknown {what} {quoted(name)}; known are {', '.join(known) or 'none'}"
    return Problem(place, message, nearest(name, known))


def _values(
    place: Place, given: Mapping[str, Scalar], known: Mapping[str, Parameter], what: str
) -> Iterator[Problem]:
    for name, value in given.items():
        if name not in known:
            yield _unknown((*place, name), what, name, known)
        elif refusal := known[name].refusal(value):
            yield Problem((*place, name), *refusal)


def _sweep(case: Case, known: Mapping[str, Parameter]) -> Iterator[Problem]:
    for name, spec in case.sweep.items():
        place = ("sweep", name)
        if name not in known:
            yield _unknown(place, "parameter", name, known)
        elif isinstance(spec, str) and known[name].kind is not int:
            yield Problem(place, f"{name} is {known[name].allowed()}: list its values")
        elif not (size := sweep_size(spec)):
            yield Problem(place, f"{quoted(str(spec))} runs downwards; write the lower end first")
        elif size <= MAX_POINTS:
            refusals = (known[name].refusal(value) for value in sweep_values(spec))
            if refusal := next(filter(None, refusals), None):
                yield Problem(place, *refusal)
    total = math.prod(sweep_size(spec) for spec in case.sweep.values())
    if total > MAX_POINTS:
        yield Problem(("sweep",), f"makes {total:,} points; at most {MAX_POINTS:,} are allowed")


def _variants(case: Case, known: Mapping[str, Parameter]) -> Iterator[Problem]:
    expected = {expectation.variant for expectation in case.expect}
    hypotheses = {hypothesis.variant for hypothesis in case.hypotheses}
    for variant, given in case.variants.items():
        yield from _values(("variants", variant), given, known, "setting")
        if variant not in expected and variant not in hypotheses:
            message = "no entry of `expect` says what this variant must show"
            yield Problem(("variants", variant), message)


def _expectations(case: Case, declaration: Declaration) -> Iterator[Problem]:
    tensors = dict.fromkeys(declaration.TENSORS)
    faces = 0
    for index, expectation in enumerate(case.expect):
        place = ("expect", index)
        if expectation.variant not in case.variants:
            yield _unknown((*place, "variant"), "variant", expectation.variant, case.variants)
        yield from _when((*place, "when"), expectation, declaration.PARAMETERS)
        faces += when_size(expectation)
        if faces > MAX_POINTS:
            message = f"makes more than {MAX_POINTS:,} points, with those of the entries before"
            yield Problem((*place, "when"), message)
            faces = 0
        finding = expectation.finding
        if finding is None:
            continue
        if finding.op is not None and finding.op not in _ops():
            yield _unknown((*place, "finding", "op"), "op", finding.op, dict.fromkeys(_ops()))
        if finding.tensor is not None and finding.tensor not in tensors:
            yield _unknown((*place, "finding", "tensor"), "tensor", finding.tensor, tensors)
    if all(expectation.clean for expectation in case.expect) and not case.hypotheses:
        yield Problem(("expect",), "every entry is clean; a case must expect a fault of a variant")
    if not any(expectation.clean for expectation in case.expect):
        yield Problem(("expect",), "no entry is clean; a case must have a variant that is sound")


def _when(
    place: Place, expectation: Expectation, known: Mapping[str, Parameter]
) -> Iterator[Problem]:
    for name, wanted in expectation.when.items():
        for value in wanted if isinstance(wanted, tuple) else (wanted,):
            yield from _values(place, {name: value}, known, "parameter")


def _owners(case: Case, known: Mapping[str, tuple[str, ...]]) -> Iterator[Problem]:
    for tensor, unit in case.owners.items():
        place = ("owners", tensor)
        if tensor not in known:
            yield _unknown(place, "tensor", tensor, known)
        elif unit not in known[tensor]:
            message = f"unknown unit {quoted(unit)}; {tensor} has {', '.join(known[tensor])}"
            yield Problem(place, message, nearest(unit, known[tensor]))


def _lanes(case: Case) -> Iterator[Problem]:
    for index, lane in enumerate(case.lanes):
        if lane in case.lanes[:index]:
            yield Problem(("lanes", index), f"{quoted(lane)} stands here for a second time")


def _hypotheses(case: Case) -> Iterator[Problem]:
    expected = {expectation.variant for expectation in case.expect}
    seen: set[str] = set()
    for index, hypothesis in enumerate(case.hypotheses):
        place: Place = ("hypotheses", index, "variant")
        if hypothesis.variant not in case.variants:
            yield _unknown(place, "variant", hypothesis.variant, case.variants)
        elif hypothesis.variant in expected:
            yield Problem(place, "is expected to show something; a hypothesis is run, not expected")
        elif hypothesis.variant in seen:
            yield Problem(place, f"{quoted(hypothesis.variant)} stands here for a second time")
        seen.add(hypothesis.variant)
    reported = any(c.reported and c.sets is not None for c in case.controls)
    if case.hypotheses and not reported:
        yield Problem(("hypotheses",), "no entry of `controls` has a reported outcome to hold to")
    if case.controls and not case.hypotheses:
        yield Problem(("controls",), "nothing is run under them: the case has no `hypotheses`")


def _controls(case: Case, known: Mapping[str, Parameter]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, control in enumerate(case.controls):
        place: Place = ("controls", index)
        if control.id in seen:
            yield Problem((*place, "id"), f"{quoted(control.id)} stands here for a second time")
        seen.add(control.id)
        yield from _values((*place, "sets"), control.sets or {}, known, "parameter")


def _models(case: Case, known: Mapping[str, Parameter]) -> Iterator[Problem]:
    """Points of the scenario that stand for experiments on an engine."""
    for place, point in _engine_points(case):
        yield from _values(place, point, known, "parameter")
        if point and not case.hypotheses:
            yield Problem(place, "nothing is held against it: the case has no `hypotheses`")


def _engine_points(case: Case) -> list[tuple[Place, Mapping[str, Scalar]]]:
    part = case.check.engine if case.check else None
    return list(engine.points(part)) if part else []


def _contradictions(case: Case, declaration: Declaration) -> Iterator[Problem]:
    point = named_point(case, declaration)
    for variant in case.variants:
        found = declaration.contradiction(point, settings(case, variant, declaration))
        if found is None:
            continue
        key, message = found
        if key in declaration.SETTINGS:
            yield Problem(("variants", variant, key), message)
        else:
            yield Problem(("params", key), message)
            return  # of parameters alone: the same for every variant
    for index, control in enumerate(case.controls):
        for hypothesis in case.hypotheses if control.sets is not None else ():
            given = settings(case, hypothesis.variant, declaration)
            found = declaration.contradiction({**point, **(control.sets or {})}, given)
            if found is not None:
                key, message = found
                yield Problem(("controls", index, "sets", key), message)
                break
    for place, sets in _engine_points(case):
        for hypothesis in case.hypotheses if sets else ():
            given = settings(case, hypothesis.variant, declaration)
            found = declaration.contradiction({**point, **sets}, given)
            if found is not None:
                key, message = found
                yield Problem((*place, key), message)
                break


def _contradicting_faces(case: Case, declaration: Declaration) -> Iterator[Problem]:
    """At most one for an entry of `expect`: a point of its `when` that cannot be, for a variant
    that runs there."""
    named = named_point(case, declaration)
    given = {e.variant: settings(case, e.variant, declaration) for e in case.expect}
    for index, expectation in enumerate(case.expect):
        for point in when_points(expectation, named):
            running = {e.variant: None for e in case.expect if e.applies(point)}
            found = [(v, declaration.contradiction(point, given[v])) for v in running]
            variant, why = next(((v, one) for v, one in found if one), ("", None))
            if why is not None:
                key, message = why
                at = told(point, (*expectation.when, key))
                place: Place = ("expect", index, "when")
                place = (*place, key) if key in expectation.when else place
                yield Problem(place, f"variant {variant}: {message} ({at})")
                break


def _contradicting_sweep(case: Case, declaration: Declaration) -> Iterator[Problem]:
    """The first point of the sweep that cannot be, for any variant."""
    given = {name: settings(case, name, declaration) for name in case.variants}
    for point in swept(case, declaration)[1:]:
        for variant in case.variants:
            found = declaration.contradiction(point, given[variant])
            if found is not None:
                key, message = found
                at = told(point, (*case.sweep, key))
                place: Place = ("sweep", key) if key in case.sweep else ("sweep",)
                yield Problem(place, f"variant {variant}: {message} ({at})")
                return
