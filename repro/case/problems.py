"""What the models refuse, said in the words of a case file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from ..escape import quoted
from ..scenarios.declare import nearest, nearest_name
from .model import (
    Case,
    Control,
    Expectation,
    ExpectedFinding,
    Facts,
    Hypothesis,
    Reported,
)
from .source import Place, Problem
from .values import FAULT_CLASSES

TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "scalar": "a single value (true, false, a number or text)",
}
# (key of the case, key within one of its entries) → model of what stands there
MODELS: Mapping[tuple[Place, Place], type[BaseModel]] = {
    (("expect",), ()): Expectation,
    (("expect",), ("finding",)): ExpectedFinding,
    (("controls",), ()): Control,
    (("controls",), ("reported",)): Reported,
    (("controls",), ("facts",)): Facts,
    (("hypotheses",), ()): Hypothesis,
}


def problems(error: ValidationError, data: Mapping[str, Any]) -> list[Problem]:
    """One problem a place of `data`; missing keys, which have no place of their own, come last.

    A required key that is only misspelt counts once, as the unknown key.
    """
    found: dict[Place, Problem] = {}
    missing: set[Place] = set()
    misspelt: set[Place] = set()
    for item in error.errors(include_url=False):
        kind = item["type"]
        place, value = _locate(item["loc"], data)
        if kind == "too_short" and len(value) >= item["ctx"]["min_length"]:
            continue  # entries that are refused themselves are not counted by pydantic
        if kind == "missing":
            missing.add(place)
        if kind == "extra_forbidden":
            meant = nearest_name(str(place[-1]), _keys(place[:-1]))
            misspelt.add((*place[:-1], meant or ""))
        found.setdefault(place, _problem(place, value, kind, item))
    kept = [place for place in found if place not in missing & misspelt]
    return [found[place] for place in sorted(kept, key=missing.__contains__)]


def _locate(location: tuple[str | int, ...], data: Any) -> tuple[Place, Any]:
    """The place that the models call `location`, which also names parts of types, and its value.

    A key that is missing has a place but no value: None.
    """
    place: Place = ()
    value = data
    for index, part in enumerate(location):
        inside = (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if inside:
            place, value = (*place, part), value[part]
        elif isinstance(value, dict) and index == len(location) - 1 and part in _keys(place):
            return (*place, part), None
    return place, value


def _model(place: Place) -> type[BaseModel]:
    return MODELS.get((place[:1], place[2:3])) or MODELS.get((place[:1], ())) or Case


def _keys(place: Place) -> list[str]:
    """The keys that the model at `place` has, as files spell them."""
    return [field.alias or name for name, field in _model(place).model_fields.items()]


def _problem(place: Place, value: Any, kind: str, item: Mapping[str, Any]) -> Problem:
    context = item.get("ctx", {})
    if kind == "missing":
        return Problem(place, "is missing; the key is required")
    if kind == "extra_forbidden":
        known = _keys(place[:-1])
        message = f"unknown key; allowed are {', '.join(known)}"
        return Problem(place, message, nearest(str(place[-1]), known))
    if kind == "literal_error":
        return Problem(place, f"must be {context['expected'].lower()}, not {describe(value)}")
    if kind in ("choice", "enum"):
        allowed = context.get("allowed") or re.findall("'([^']*)'", context["expected"])
        message = f"must be one of {', '.join(allowed)}, not {describe(value)}"
        hint = nearest(value, allowed) if isinstance(value, str) else None
        if place == ("class",) and isinstance(value, str) and value.upper() in FAULT_CLASSES:
            hint = f"{value.upper()} is {quoted(FAULT_CLASSES[value.upper()])}"
        return Problem(place, message, hint)
    if kind in TYPES:
        return Problem(place, f"must be {TYPES[kind]}, not {describe(value)}")
    if kind in ("string_too_short", "string_too_long"):
        limit = context.get("max_length", context.get("min_length"))
        side = "at most" if kind == "string_too_long" else "at least"
        return Problem(place, f"must have {side} {limit} characters, not {len(value)}")
    if kind == "too_short":
        return Problem(place, f"must have at least {context['min_length']} entries")
    message = str(item["msg"])
    if kind == "form":
        message += f", not {describe(value)}"
    return Problem(place, message)


def describe(value: Any) -> str:
    """A value for the end of "…, not …"."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(value) if isinstance(value, str) else f"{value}"
