"""Where builds run, for a user who has an environment with one."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ..environments.environment import Environment


class _Looks(Protocol):
    def given(self, python: Path, /) -> Environment: ...


class Given:
    """The environment of one interpreter, whatever build is asked for; nothing there is changed."""

    def __init__(self, environments: _Looks, python: Path) -> None:
        self._environments = environments
        self._python = python

    def of(self, word: str, /) -> Environment:
        del word
        return self._environments.given(self._python)

    def release(self, environment: Environment, /) -> None:
        """Nothing of a user's is held."""
