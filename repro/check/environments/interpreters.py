"""Which Python an environment is made with: one that is here and that the build takes. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`version` as it says it, `3.11.7`."""

    path: Path
    version: str

    @property
    def minor(self) -> tuple[int, int]:
        """(3, 11)."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a build wants of Python. `requires` is its Requires-Python, None where unknown.

    `wheels` are names of the wheels that could be taken; empty where unknown.
    """

    requires: str | None
    wheels: tuple[str, ...]


def read_list(text: str) -> list[Interpreter]:
    """The CPythons in the output of `uv python list --output-format json`; [] if it is none."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = [_interpreter(entry) for entry in entries] if isinstance(entries, list) else []
    return [one for one in found if one]


def choose(have: Sequence[Interpreter], needs: Needs) -> list[Interpreter]:
    """The interpreters that the build takes, one a minor version: the first of `have` before all
    others, these newest first.
    """
    first = [one for one in have[:1] if fits(one, needs)]
    rest = [one for one in have[1:] if fits(one, needs)]
    rest.sort(key=lambda one: (one.minor, _numbers(one.version)), reverse=True)
    seen: dict[tuple[int, int], Interpreter] = {}
    for one in (*first, *rest):
        seen.setdefault(one.minor, one)
    return list(seen.values())


def fits(one: Interpreter, needs: Needs) -> bool:
    """Whether the build takes this Python, as far as is known."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if needs.requires:
        try:
            if one.version not in SpecifierSet(needs.requires, prereleases=True):
                return False
        except InvalidSpecifier:
            return True  # uv will say what it makes of that
    return not needs.wheels or any(_takes(name, one.minor) for name in needs.wheels)


def _takes(wheel: str, minor: tuple[int, int]) -> bool:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        tags = parse_wheel_filename(wheel)[3]
    except InvalidWheelFilename:
        return False
    for tag in tags:
        match = re.fullmatch(r"(cp|py)(\d)(\d*)", tag.interpreter)
        if not match or int(match[2]) != minor[0]:
            continue
        least = int(match[3] or 0)
        open_ended = match[1] == "py" or tag.abi == "abi3"
        if least == minor[1] or (open_ended and least <= minor[1]):
            return True
    return False


def _interpreter(entry: Any) -> Interpreter | None:
    if not isinstance(entry, dict) or entry.get("implementation") != "cpython":
        return None
    path, version = entry.get("path"), entry.get("version")
    default = entry.get("variant") in {None, "default"}
    if not isinstance(path, str) or not isinstance(version, str) or not default:
        return None
    return Interpreter(Path(path), version) if re.match(r"3\.\d+\.\d+", version) else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def listed(versions: Iterable[Interpreter]) -> str:
    """Their versions for a message, each once."""
    return ", ".join(dict.fromkeys(one.version for one in versions)) or "none"
