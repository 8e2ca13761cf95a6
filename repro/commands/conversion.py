"""Plain arguments of a command line without pydantic, which costs more than a short command itself.

Typer converts every argument through pydantic, also those that are texts already or were not given.
Here these are passed on as they are, and everything else goes the way of typer. This reaches into
typer: a method of a class that is not public says what converts a parameter. Where there is none,
or what it gives is asked otherwise, typer does all of it, as if this were not here. Tests hold
both, and that a plain value is what typer makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

NOT_PLAIN = object()


class Conversion:
    """What converts the values of one parameter: typer's own, but for plain values."""

    def __init__(self, parameter: Any, typers_own: Callable[[Any], Any]) -> None:
        self._parameter, self._typers_own = parameter, typers_own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._typers_own(self._parameter), name)

    def coerce(self, value: Any, *more: Any, **named: Any) -> Any:
        found = plain(self._parameter, value)
        if found is not NOT_PLAIN:
            return found
        return self._typers_own(self._parameter).coerce(value, *more, **named)


def pass_plain_values() -> None:
    """Let typer take texts, lists of texts and absent values as they are."""
    from typer import core

    parameter: Any = getattr(core, "_TyperParameter", None)
    typers_own = getattr(parameter, "get_runtime_param", None)
    if typers_own is None:
        return

    def get_runtime_param(self: Any) -> Conversion:
        return Conversion(self, typers_own)

    parameter.get_runtime_param = get_runtime_param


def plain(parameter: Any, value: Any) -> Any:
    """The value of a parameter where it needs no conversion, else NOT_PLAIN."""
    several = parameter.multiple or parameter.nargs == -1
    if value is None:
        return () if several else None
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    texts = isinstance(value, (list, tuple)) and all(type(one) is str for one in value)
    if several and annotation == list[str] and texts:
        return list(value)
    if annotation is Path and type(value) is str and not several and not _checked(parameter):
        return NOT_PLAIN if "\0" in value else Path(value)  # of which the other has its message
    # a text, or a default that has its type already; a number may have bounds to keep
    if not several and isinstance(annotation, type) and type(value) is annotation:
        return NOT_PLAIN if annotation in (int, float) else value
    return NOT_PLAIN


def _checked(parameter: Any) -> bool:
    """Whether a path must be looked at before it is taken."""
    info = getattr(parameter.type_descriptor, "parameter_info", None)
    if info is None or getattr(info, "path_type", None) is not None:
        return True
    return any(getattr(info, check, True) for check in ("exists", "resolve_path"))
