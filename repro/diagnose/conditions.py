"""Conditions of rules, in three values: a name that was not seen is neither true nor false.

A condition maps names of the situation to tests; all must hold. A test is a value (equal to it), a
list (any of it), ">=4" and its like (numbers, or versions where the value has dots), "~regex"
(found in the text), or "unknown" (nothing was seen of the name). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from .situation import Scalar, Seen, Situation

Test = Scalar | Sequence[Scalar]
When = Mapping[str, Test]

UNKNOWN = "unknown"
COMPARISON = re.compile(r"(>=|<=|<|>)\s*(.+)")
NUMBER = re.compile(r"-?\d+(\.\d+)?")
VERSION = re.compile(r"v?(\d+(?:\.\d+)+)(.*)", re.DOTALL)
# What marks a build that precedes the release it names.
BEFORE = re.compile(r"\.?(a|b|rc|dev|alpha|beta)\d*", re.IGNORECASE)


def holds(when: When, situation: Situation) -> bool | None:
    """Whether every test of `when` holds; None where one is unknown and none is false."""
    answers = [_name(name, test, situation) for name, test in when.items()]
    if False in answers:
        return False
    return None if None in answers else True


def any_holds(whens: Iterable[When], situation: Situation) -> bool | None:
    """Whether one of several conditions holds; None where none does and one is unknown."""
    answers = [holds(when, situation) for when in whens]
    if True in answers:
        return True
    return None if None in answers else False


def version(text: str) -> tuple[tuple[int, ...], int] | None:
    """A version as something to compare: its numbers, and -1 for a build before the release.

    None for what is no version of a release line (a bare number, a commit).
    """
    match = VERSION.match(text.strip())
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")[:4] if len(part) < 9]
    return (*numbers, *[0] * (4 - len(numbers))), -1 if BEFORE.match(match[2]) else 0


def _name(name: str, test: Test, situation: Situation) -> bool | None:
    seen = situation.get(name)
    if test == UNKNOWN:
        return seen is None
    if seen is None:
        return False if name in situation.absent else None
    return any(_value(value, one) for value in seen.values for one in _tests(test))


def _tests(test: Test) -> Sequence[Scalar]:
    return [test] if isinstance(test, (str, int, float, bool)) else test


def _value(value: Scalar, test: Scalar) -> bool:
    if not isinstance(test, str):
        return type(value) is not str and value == test
    if test.startswith("~"):
        return _pattern(test[1:]).search(str(value)) is not None
    match = COMPARISON.fullmatch(test)
    if match:
        return _compare(value, match[1], match[2])
    return str(value).casefold() == test.casefold()


def _compare(value: Scalar, sign: str, bound: str) -> bool:
    if NUMBER.fullmatch(bound) and isinstance(value, (int, float)):
        order = (value > float(bound)) - (value < float(bound))
    else:
        have, wanted = version(str(value)), version(bound)
        if have is None or wanted is None:
            return False
        order = (have > wanted) - (have < wanted)
    return {">=": order >= 0, "<=": order <= 0, "<": order < 0, ">": order > 0}[sign]


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


def evidence(when: When, situation: Situation) -> list[Seen]:
    """What was seen of the names of a condition: of several values those that fit it, with their
    lines; all of them where none fits."""
    found = []
    for name, test in when.items():
        seen = situation.get(name)
        if seen is not None:
            tests = _tests(test)
            found.append(seen.only([any(_value(v, t) for t in tests) for v in seen.values]))
    return found
