"""Case files: find, load, explain what is wrong with them by file, line, column and key.

The public names of the case room; the siblings `its siblings` are its parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ..errors import CaseError
from ..escape import printable
from ..records import LANES
from ..scenarios.declare import Declaration
from ..scenarios.registry import Declarations
from . import problems, rules
from .model import Case, Control, Expectation, ExpectedFinding, Facts, Hypothesis
from .points import named_point, override, points, settings
from .schema import case_schema
from .shipped import find_cases, shipped_cases
from .source import Problem, decode, failure, read_bytes
from .text import Document, compose
from .values import FAULT_CLASSES

__all__ = [
    "FAULT_CLASSES",
    "LANES",
    "Case",
    "Control",
    "Expectation",
    "ExpectedFinding",
    "Facts",
    "Hypothesis",
    "LoadedCase",
    "case_schema",
    "find_cases",
    "load_case",
    "load_cases",
    "named_point",
    "override",
    "points",
    "settings",
    "shipped_cases",
]


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A valid case and the file it came from. `sha256` is of the file's bytes, in hex."""

    case: Case
    path: Path
    sha256: str
    lines: tuple[str, ...]


def load_case(path: Path, scenarios: Mapping[str, Declaration] | None = None) -> LoadedCase:
    """Read and check one case file.

    `scenarios`: name → declaration, the shipped ones by default. CaseError for the first problem by
    line, saying how many more there are.
    """
    content = read_bytes(path)
    text = decode(path, content)
    document = compose(path, text)
    try:
        case = Case.model_validate(document.data)
    except ValidationError as error:
        raise _first(path, document, problems.problems(error, document.data)) from None
    found = rules.problems(case, Declarations() if scenarios is None else scenarios)
    if found:
        raise _first(path, document, found)
    return LoadedCase(case, path, hashlib.sha256(content).hexdigest(), tuple(text.splitlines()))


def _first(path: Path, document: Document, problems: Sequence[Problem]) -> CaseError:
    def order(problem: Problem) -> tuple[int, int]:
        position = document.position(problem.place)
        return position.line, position.column

    first = min(problems, key=order)
    return failure(path, first, document.position(first.place), more=len(problems) - 1)


def load_cases(
    arguments: Sequence[str], scenarios: Mapping[str, Declaration] | None = None
) -> list[LoadedCase]:
    """The cases that files, folders and ids of a command line name. CaseError if one is invalid or
    two of them have one id."""
    loaded: dict[str, LoadedCase] = {}
    for path in find_cases(arguments):
        one = load_case(path, scenarios)
        other = loaded.setdefault(one.case.id, one)
        if other is not one:
            message = f"has the id of {printable(str(other.path))}; ids must differ"
            raise CaseError(message, where=printable(str(path)), key="id")
    return list(loaded.values())
