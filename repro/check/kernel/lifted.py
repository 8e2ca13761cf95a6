"""What the child that lifts said of a kernel, looked at before it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .subject import Parameter

LONGEST = 1 << 18  # characters of a lifted module
MOST_PARAMETERS = 200


class NotLiftedError(Exception):
    """The kernel is not there, or could not be lifted; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Lifted:
    """A kernel out of a build. path, line: where it is defined. text: the module that holds it.
    places: for each line of the module, the file and line of the build, ("", 0) for none."""

    path: str
    line: int
    entry: str
    parameters: tuple[Parameter, ...]
    text: str
    places: tuple[tuple[str, int], ...]


def lifted(said: Mapping[str, Any], files: Mapping[str, bytes]) -> Lifted:
    """The kernel that `said` describes. files: the members that the child was given.

    NotLiftedError with the child's reason, or where it does not describe one.
    """
    if "unknown" in said:
        raise NotLiftedError(str(said["unknown"]))
    try:
        found = _lifted(said)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise NotLiftedError(f"the child's answer is no kernel: {error!r}") from error
    if found.path not in files or any(name and name not in files for name, _ in found.places):
        raise NotLiftedError("the child names a file that it was not given")
    return found


def _lifted(said: Mapping[str, Any]) -> Lifted:
    text, entry = said["text"], said["entry"]
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ValueError("text")
    if not isinstance(entry, str) or not entry.isidentifier():
        raise ValueError("entry")
    if len(said["parameters"]) > MOST_PARAMETERS:
        raise ValueError("parameters")
    files = [str(name) for name in said["files"]]
    return Lifted(
        str(said["path"]),
        int(said["line"]),
        entry,
        tuple(map(_parameter, said["parameters"])),
        text,
        tuple((files[int(number)], int(line)) for number, line in said["places"]),
    )


def _parameter(said: Mapping[str, Any]) -> Parameter:
    literal = said.get("literal")
    if literal is not None and not isinstance(literal, bool | int | float):
        raise ValueError("literal")
    return Parameter(
        str(said["name"]), str(said["annotation"]), said["default"] is not None, literal
    )
