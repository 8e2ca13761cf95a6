"""`specrepro session`: a bisection in between: how far it is, what was tried, corrections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..escape import printable
from .options import Json, Runs

app = typer.Typer(
    help="Bisections: status, log, corrections.", add_completion=False, rich_markup_mode=None
)

Which = Annotated[
    str | None,
    typer.Option("--session", metavar="RUN", help="An id or its beginning [the newest]."),
]
Build = Annotated[str, typer.Argument(metavar="BUILD", help="A candidate: a version, a commit.")]
Word = Annotated[str, typer.Argument(metavar="good|bad|skip", help="What is so of it.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="What `specrepro session log` printed.")]


@app.command("status")
def status(session: Which = None, runs: Runs = None, json_: Json = False) -> None:
    """Say how far a session is, and what it would try next."""
    from .. import store
    from ..bisection import upkeep
    from ..report.bisect_page import print_standing
    from ..report.console import console, print_json

    record = upkeep.standing(upkeep.find(store.runs_folder(runs), session))
    if json_:
        print_json(record)
    else:
        print_standing(console(), record)


@app.command("log")
def log(session: Which = None, runs: Runs = None) -> None:
    """Print the journal of a session, fit for `replay`."""
    from .. import store
    from ..bisection import upkeep

    for line in upkeep.log(upkeep.find(store.runs_folder(runs), session)):
        print(printable(line))


@app.command("replay")
def replay(file: File, json_: Json = False) -> None:
    """Play a journal again, without a session and without a trial: what follows from it."""
    from ..bisection import upkeep
    from ..report.bisect_page import print_standing
    from ..report.console import console, print_json

    record = upkeep.replay(file)
    if json_:
        print_json(record)
    else:
        print_standing(console(), record)


@app.command("undo")
def undo(session: Which = None, runs: Runs = None) -> None:
    """Take the latest trial or mark back."""
    from .. import store
    from ..bisection import upkeep

    path = upkeep.find(store.runs_folder(runs), session)
    print(f"taken back: {upkeep.undo(path)}; the same bisect command goes on")


@app.command("mark")
def mark(build: Build, word: Word, session: Which = None, runs: Runs = None) -> None:
    """Say yourself what a build is; it holds against every trial of it."""
    from .. import store
    from ..bisection import upkeep

    path = upkeep.find(store.runs_folder(runs), session)
    print(f"{upkeep.mark(path, build, word)} is {word}; the same bisect command goes on")
