"""The console of rich, but for the end it makes when nobody reads any more."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class RaisingConsole(Console):
    """A console that leaves a broken pipe to the command line."""

    def on_broken_pipe(self) -> NoReturn:
        """Rich would exit 1 here, which is a verdict; the command line has its own way out."""
        raise  # called while the BrokenPipeError is handled
