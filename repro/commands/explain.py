"""`specrepro explain`: what an Xid, a CUDA error, a line of a log or a fault class means."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Json

What = Annotated[
    str, typer.Argument(metavar="xid|error|line|class", help="What kind of thing to explain.")
]
Words = Annotated[list[str], typer.Argument(metavar="WORD...", help="Its number, name or text.")]


def explain(what: What, words: Words, json_: Json = False) -> None:
    """Say what something means: `xid 31`, `error 700`, `line "…"`, `class plan-buffer-race`."""
    from ..diagnose.lookup import explained
    from ..escape import printable
    from ..report.console import print_json

    told = explained(what, " ".join(words))
    if json_:
        print_json({"schema": "specrepro/explain@1", **told.record})
        return
    for line in told.text.splitlines():
        print(printable(line))
