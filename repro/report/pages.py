"""Which page prints which record, so that `runs show` prints what the command printed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from rich.console import Console

# schema of a record → module of this package, function(console, record, quiet, verbose).
# Loaded by name because a page costs start-up time that only its own command should pay.
PAGES: Mapping[str, tuple[str, str]] = {
    "specrepro/run@1": ("run_page", "print_run"),
    "specrepro/check@1": ("check_page", "print_check"),
}


def print_page(out: Console, record: Mapping[str, Any], *, quiet: bool, verbose: bool) -> None:
    """Print the page of a stored record; its schema is one that `store.load` lets through."""
    module, function = PAGES[record["schema"]]
    page = getattr(import_module(f".{module}", __package__), function)
    page(out, record, quiet=quiet, verbose=verbose)
