"""Which page prints which record, so that `runs show` prints what the command printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console


def print_page(out: Console, record: Mapping[str, Any], *, quiet: bool, verbose: bool) -> None:
    """Print the page of a stored record; its schema is one that `store.load` lets through."""
    _page(str(record["schema"]))(out, record, quiet=quiet, verbose=verbose)


def _page(schema: str) -> Callable[..., None]:
    """Loads one page only: each costs start-up time that its own command alone should pay."""
    match schema:
        case "specrepro/run@1":
            from .run_page import print_run

            return print_run
        case "specrepro/check@1":
            from .check_page import print_check

            return print_check
        case "specrepro/bisect@1":
            from .bisect_page import print_bisect

            return print_bisect
        case "specrepro/diagnose@1":
            from .diagnose_page import print_diagnosis

            return print_diagnosis
        case "specrepro/watch@1":
            from .watch_page import print_watch

            return print_watch
    raise AssertionError(f"no page for {schema}")
