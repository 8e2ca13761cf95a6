"""The points of a case: the named one, and those that a sweep adds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from ..errors import UsageError
from ..escape import printable, quoted
from ..records import Scalar
from ..scenarios.declare import Declaration, defaults, nearest, show
from ..scenarios.registry import Declarations
from .model import Case, Expectation

MAX_POINTS = 10_000


def named_point(case: Case, declaration: Declaration) -> dict[str, Scalar]:
    """Every parameter of the scenario: the case's value, or the default."""
    return _filled(declaration, case.params)


def settings(case: Case, variant: str, declaration: Declaration) -> dict[str, Scalar]:
    """Every setting of the scenario: the variant's value, or the default."""
    given = case.variants[variant]
    return defaults(declaration.SETTINGS) | {
        name: declaration.SETTINGS[name].check(name, value) for name, value in given.items()
    }


def _filled(declaration: Declaration, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return defaults(declaration.PARAMETERS) | {
        name: declaration.PARAMETERS[name].check(name, value) for name, value in given.items()
    }


def sweep_size(spec: str | Sequence[Scalar]) -> int:
    """How many values a sweep gives a parameter; 0 for a range that runs downwards."""
    if isinstance(spec, str):
        first, last = _ends(spec)
        return max(0, last - first + 1)
    return len(spec)


def sweep_values(spec: str | Sequence[Scalar]) -> Sequence[Scalar]:
    """The values: of a range "first..last" both ends and all between; of a list its entries."""
    if isinstance(spec, str):
        first, last = _ends(spec)
        return range(first, last + 1)
    return spec


def _ends(spec: str) -> tuple[int, int]:
    first, _, last = spec.partition("..")
    return int(first), int(last)


def when_size(expectation: Expectation) -> int:
    """How many points the `when` of an expectation describes; 1 for none."""
    return math.prod(len(v) if isinstance(v, tuple) else 1 for v in expectation.when.values())


def when_points(expectation: Expectation, named: Mapping[str, Scalar]) -> list[dict[str, Scalar]]:
    """The points that the `when` of an expectation describes, all else as in `named`."""
    values = [v if isinstance(v, tuple) else (v,) for v in expectation.when.values()]
    return [
        {**named, **dict(zip(expectation.when, combination, strict=True))}
        for combination in itertools.product(*values)
    ]


def points(
    case: Case,
    sweep: bool = False,
    scenarios: Mapping[str, Declaration] | None = None,
    variants: Sequence[str] = (),
) -> list[dict[str, Scalar]]:
    """The named point first; with `sweep`, the cross product of the case's `sweep` after it.

    Each point holds every parameter of the scenario, no two are equal. UsageError if the sweep has
    no values, more than MAX_POINTS, or a point that contradicts itself or one of `variants` (all
    if empty).
    """
    declaration = (scenarios or Declarations())[case.scenario]
    named = named_point(case, declaration)
    if not sweep:
        return [named]
    if not case.sweep:
        raise UsageError(f"case {case.id} has no sweep", hint="its parameters: --set name=value")
    if math.prod(sweep_size(spec) for spec in case.sweep.values()) > MAX_POINTS:
        raise UsageError(f"the sweep of case {case.id} has more than {MAX_POINTS:,} points")
    made = swept(case, declaration)
    for point in made[1:]:
        refuse_contradiction(case, point, declaration, variants)
    return made


def swept(case: Case, declaration: Declaration) -> list[dict[str, Scalar]]:
    """The named point and the cross product of the sweep, each point once; contradictions too."""
    made = [named_point(case, declaration)]
    seen = {tuple(made[0].values())}
    for values in itertools.product(*(sweep_values(spec) for spec in case.sweep.values())):
        point = _filled(declaration, {**case.params, **dict(zip(case.sweep, values, strict=True))})
        if tuple(point.values()) not in seen:
            seen.add(tuple(point.values()))
            made.append(point)
    return made


def refuse_contradiction(
    case: Case,
    point: Mapping[str, Scalar],
    declaration: Declaration,
    variants: Sequence[str] = (),
) -> None:
    """UsageError if `point` contradicts itself or one of `variants` (all of the case if empty)."""
    for variant in variants or case.variants:
        found = declaration.contradiction(point, settings(case, variant, declaration))
        if found is not None:
            key, message = found
            at = told(point, (*case.sweep, key))
            message = f"case {case.id}, variant {variant}: {key}: {message}"
            raise UsageError(f"{message} ({at})" if at else message)


def told(point: Mapping[str, Scalar], names: Iterable[str]) -> str:
    """Those parameters of a point that have one of `names`, for a message: `a=1, b=x`."""
    known = dict.fromkeys(name for name in names if name in point)
    return ", ".join(f"{name}={_word(point[name])}" for name in known)


def _word(value: Scalar) -> str:
    return printable(value) if isinstance(value, str) else show(value)


def override(
    case: Case,
    values: Mapping[str, str],
    scenarios: Mapping[str, Declaration] | None = None,
) -> Case:
    """The case with parameters set from a command line (name → text), which fixes them in sweeps.

    UsageError for an unknown name or a value that is not allowed. Contradictions are looked for
    once it is known which variants run (`refuse_contradiction`).
    """
    if not values:
        return case
    declaration = (scenarios or Declarations())[case.scenario]
    known = declaration.PARAMETERS
    changed = dict(case.params)
    ranges = f"parameters and what they may be: specrepro show {case.id}"
    for name, text in values.items():
        if name in declaration.SETTINGS:
            message = f"{quoted(name)} is set by a variant of case {case.id}, not by --set"
            raise UsageError(message, hint=f"variants: {', '.join(case.variants)}")
        if name not in known:
            message = f"unknown parameter {quoted(name)} of case {case.id}; it has "
            raise UsageError(message + ", ".join(known), hint=nearest(name, known) or ranges)
        try:
            changed[name] = known[name].parse(name, text)
        except UsageError as error:
            raise UsageError(error.message, hint=error.hint or ranges) from None
    sweep = {name: spec for name, spec in case.sweep.items() if name not in values}
    return case.model_copy(update={"params": changed, "sweep": sweep})
