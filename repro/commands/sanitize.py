"""`specrepro sanitize SCRIPT.py`: a whole script, its Triton launches emulated and checked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import Json, Quiet, Skip, Timeout, Verbose

Script = Annotated[Path, typer.Argument(metavar="SCRIPT.py", help="The script to run.")]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="[ARGS]...", help="What the script is given.")
]


def sanitize(
    script: Script,
    arguments: Arguments = None,
    skip: Skip = None,
    timeout: Timeout = None,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a script with its Triton launches emulated, launch by launch; options come before it.

    The script's own output stays on stdout (with --json it goes to stderr).
    """
    from ..emulation.sanitized import sanitize_script
    from ..report.console import console, print_json
    from ..report.sanitize_page import print_sanitized

    output = sys.stderr.fileno() if json_ else None
    done = sanitize_script(script, arguments or [], timeout, skip=tuple(skip or ()), output=output)
    if json_:
        print_json(done.record)
    else:
        print_sanitized(console(), done.record, quiet=quiet, verbose=verbose)
    raise typer.Exit(int(done.status))
