"""Regular expressions that are compiled when they are first used.

A log needs few of the two hundred; compiling all of them costs more than reading a small log.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "findall", "finditer", "sub", "split")


class _Lazy:
    """Looks like a compiled pattern, and has its methods from the first call on."""

    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self._text, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazily(text: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern as `re.compile` makes it, made when it is needed."""
    return cast("re.Pattern[str]", _Lazy(text, flags))
