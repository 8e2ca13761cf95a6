"""`specrepro new --from LOG`: a case file to start from, with the settings that a log shows."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

From = Annotated[str, typer.Option("--from", metavar="LOG", help="The log of the fault.")]
Class = Annotated[
    str | None,
    typer.Option("--class", metavar="CLASS", help="The fault class [default: the likeliest]."),
]
Id = Annotated[str, typer.Option("--id", metavar="ID", help="Name of the case and of its file.")]


def new(from_: From, class_: Class = None, id_: Id = "my-case") -> None:
    """Print a case file to start from: its class's scenario with what the log shows."""
    from ..diagnose.skeleton import skeleton

    sys.stdout.write(skeleton(from_, class_, id_))
