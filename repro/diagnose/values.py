"""Values of facts, as the rules need them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .facts import Fact, Value
from .situation import Scalar, surest_first

# How an argument says that there is nothing.
NONE = ("None", "", "{}", "False", "none", "null")
# A lower-case k counts thousands, as the engine's command line reads it.
UNITS = {"k": 1_000, "K": 1_024, "m": 1_000_000, "M": 1_048_576}


def of_kind(facts: Sequence[Fact], kind: str) -> list[Fact]:
    """The facts of a kind, observed ones first."""
    return list(surest_first(fact for fact in facts if fact.kind == kind))


def number(value: Value) -> Scalar | None:
    """A number as a log or a command line writes it ("256K", "1_000"); None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    written = str(value).strip().replace(",", "").replace("_", "")
    match = re.fullmatch(r"(-?\d{1,15}(?:\.\d{1,15})?)([kKmM]?)", written)
    if match is None:
        return None
    amount = float(match[1]) if "." in match[1] else int(match[1])
    return int(amount * UNITS[match[2]]) if match[2] else amount


def frames_text(fact: Fact) -> str:
    """The frames of a stack as one text."""
    return " ".join(map(str, listed(fact.get("frames"))))


def texts(facts: Iterable[Fact], name: str) -> list[str]:
    """One value of several facts as text, where they have it."""
    return [text for fact in facts if (text := text_of(fact.get(name)))]


def texts_of(fact: Fact, *names: str) -> list[str]:
    """Values of one fact as text, where it has them."""
    return [text for name in names if (text := text_of(fact.get(name)))]


def text_of(value: object) -> str | None:
    """A value as text, None where there is none."""
    return str(value) if value not in (None, "") else None


def listed(value: object) -> Sequence[object]:
    """A value that is a list; an empty one for anything else."""
    return value if isinstance(value, tuple) else ()


def int_of(fact: Fact, name: str) -> int:
    """A number of a fact, 0 where it has none."""
    value = fact.get(name)
    return int(value) if isinstance(value, (int, float)) else 0


def float_of(fact: Fact, name: str) -> float:
    """A number of a fact, 0 where it has none."""
    value = fact.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0
