"""How a scenario declares what a case may say about it. Standard library only: `list` and `show`
read declarations without numpy."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..errors import UsageError
from ..escape import quoted
from ..records import Scalar

TRUE_FALSE = {"true": True, "false": False}
KIND_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
# More than any value has; int() itself refuses 4,300 digits with a message about the interpreter.
LONGEST_NUMBER = 40


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` may have been meant to be, None if nothing is near."""
    found = difflib.get_close_matches(name[:200], list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The hint for a name that is not known, None if no known one is near."""
    found = nearest_name(name, known)
    return f"did you mean {quoted(found)}?" if found else None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One named value: its default, its type, and what is allowed.

    `kind` is bool, int, float or str. `low` and `high` are inclusive and for numbers only;
    `choices` lists every allowed value. `doc` is one sentence with the unit, for `specrepro show`.
    """

    default: Scalar
    kind: type[bool] | type[int] | type[float] | type[str]
    low: int | float | None = None
    high: int | float | None = None
    choices: tuple[Scalar, ...] | None = None
    doc: str = ""

    def allowed(self) -> str:
        """What may stand here, as the end of a sentence: "one of …", "a whole number in 1..8"."""
        if self.choices is not None:
            return "one of " + ", ".join(show(choice) for choice in self.choices)
        name = KIND_NAMES[self.kind]
        if self.low is not None and self.high is not None:
            return f"{name} in {self.low}..{self.high}"
        if self.low is not None:
            return f"{name}, at least {self.low}"
        if self.high is not None:
            return f"{name}, at most {self.high}"
        return name

    def refusal(self, value: Scalar) -> tuple[str, str | None] | None:
        """Why `value` is not allowed ("must be …, not …") and a hint; None if it is."""
        fits = type(value) is self.kind or (self.kind is float and type(value) is int)
        if fits and isinstance(value, float):
            fits = math.isfinite(value)
        if fits and self.choices is not None:
            fits = value in self.choices
        if fits and not isinstance(value, (bool, str)):
            fits = (self.low is None or value >= self.low) and (
                self.high is None or value <= self.high
            )
        if fits:
            return None
        hint = None
        if self.choices is not None and isinstance(value, str):
            hint = nearest(value, (str(choice) for choice in self.choices))
        return f"must be {self.allowed()}, not {show(value)}", hint

    def check(self, name: str, value: Scalar) -> Scalar:
        """`value` if parameter `name` may have it (a whole number for a float becomes one).

        UsageError says what is allowed, with the nearest choice as its hint.
        """
        refusal = self.refusal(value)
        if refusal is not None:
            message, hint = refusal
            raise UsageError(f"{name} {message}", hint=hint)
        return float(value) if self.kind is float else value

    def parse(self, name: str, text: str) -> Scalar:
        """The value that `text` (of a command line) stands for; UsageError if it is not allowed."""
        value: Scalar = text
        if self.kind is bool:
            value = TRUE_FALSE.get(text.lower(), text)
        elif self.kind is not str and len(text) <= LONGEST_NUMBER and "_" not in text:
            try:
                value = int(text) if self.kind is int else float(text)
            except ValueError:
                value = text  # not a number: check() says what is allowed
        return self.check(name, value)


def show(value: Scalar) -> str:
    """A value as a case file would write it, safe to print."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else repr(value)


def defaults(parameters: Mapping[str, Parameter]) -> dict[str, Scalar]:
    """Every name with its default."""
    return {name: parameter.default for name, parameter in parameters.items()}


class Declaration(Protocol):
    """What the module of a scenario (or its `…_declaration` sibling) offers to case files.

    `PARAMETERS`: what `params`, `sweep`, `when` and `--set` may name. `SETTINGS`: what a variant
    may set. `UNITS`: tensor → names of the units its ownership may be declared in. `TENSORS`: the
    names of all tensors of its launches and findings, which an expected finding may name.
    """

    @property
    def PARAMETERS(self) -> Mapping[str, Parameter]: ...

    @property
    def SETTINGS(self) -> Mapping[str, Parameter]: ...

    @property
    def UNITS(self) -> Mapping[str, tuple[str, ...]]: ...

    @property
    def TENSORS(self) -> tuple[str, ...]: ...

    def contradiction(
        self, point: Mapping[str, Scalar], settings: Mapping[str, Scalar], /
    ) -> tuple[str, str] | None:
        """The key to blame and what is wrong, if these values cannot stand together; else None.

        Both mappings hold every declared name.
        """
        ...
