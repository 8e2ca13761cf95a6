"""What the models refuse, said in the words of a case file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..escape import quoted
from ..scenarios.declare import nearest, nearest_name
from .model import Case
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


def _model(place: Place) -> type[BaseModel] | None:
    """The model of what stands at a place; None for what has no keys of its own."""
    here: Any = Case
    for part in place:
        here = _bare(here)
        if _is_model(here):
            fields = here.model_fields.items()
            here = next((f.annotation for name, f in fields if part == (f.alias or name)), None)
        else:
            # an entry of a list, or a value of a mapping whose keys the file chooses
            entries = [one for one in get_args(here) if one is not Ellipsis]
            here = entries[-1] if entries else None
    here = _bare(here)
    return here if _is_model(here) else None


def _bare(annotation: Any) -> Any:
    """A type without what is said about it; of alternatives the one that holds a model."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        bare = [_bare(one) for one in get_args(annotation)]
        return next((one for one in bare if _is_model(one) or get_args(one)), bare[0])
    return annotation


def _is_model(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _keys(place: Place) -> list[str]:
    """The keys that the model at `place` has, as files spell them."""
    model = _model(place)
    fields = model.model_fields.items() if model is not None else ()
    return [field.alias or name for name, field in fields]


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
