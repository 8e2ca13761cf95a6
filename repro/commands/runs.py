"""`specrepro runs`: the stored runs: list them, show one again, remove old ones."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Json, Quiet, Runs, Verbose

app = typer.Typer(
    help="The stored runs.", no_args_is_help=False, add_completion=False, rich_markup_mode=None
)

Keep = Annotated[int, typer.Option("--keep", min=0, help="How many of the newest stay.")]
Which = Annotated[str, typer.Argument(metavar="RUN", help="`latest`, an id or its beginning.")]


@app.command("list")
def list_runs(runs: Runs = None, json_: Json = False) -> None:
    """List the stored runs, newest first."""
    from .. import store
    from ..report.console import console, print_json
    from ..report.run_list import print_runs, runs_json

    folder = store.runs_folder(runs)
    found = store.stored(folder)
    if json_:
        print_json(runs_json(found))
    else:
        print_runs(console(), folder, found)


@app.command("show")
def show_run(
    run: Which = "latest",
    runs: Runs = None,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Print the page of a stored run again."""
    from .. import store
    from ..report.console import console, print_json
    from ..report.pages import print_page

    record = store.load(store.find(store.runs_folder(runs), run))
    if json_:
        print_json(record)
    else:
        print_page(console(), record, quiet=quiet, verbose=verbose)


@app.command("prune")
def prune_runs(keep: Keep = 20, runs: Runs = None, json_: Json = False) -> None:
    """Remove all but the newest runs."""
    from .. import store
    from ..report.console import console, print_json
    from ..report.run_list import print_pruned, runs_json

    gone = store.prune(store.runs_folder(runs), keep)
    if json_:
        print_json(runs_json(gone))
    else:
        print_pruned(console(), gone)
