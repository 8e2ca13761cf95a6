"""`specrepro cache`: what was read of builds: how much it is, take away what is old."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Json

app = typer.Typer(
    help="The cache of what was read of builds.",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
)

Folder = Annotated[
    Path | None,
    typer.Option(
        "--cache", metavar="DIR", help="Where files of builds are kept [default: the cache folder]."
    ),
]
Limit = Annotated[
    float, typer.Option("--limit", metavar="GIB", min=0, help="What may stay, in GiB.")
]


@app.command("list")
def list_cache(cache: Folder = None, json_: Json = False) -> None:
    """List what the cache holds, by kind."""
    from ..check.cache import default_folder
    from ..check.cache_pruning import shelved
    from ..report.cache_list import cache_json, print_cache
    from ..report.console import console, print_json

    folder = cache or default_folder()
    found = shelved(folder)
    if json_:
        print_json(cache_json(folder, found))
    else:
        print_cache(console(), folder, found)


@app.command("prune")
def prune_cache(limit: Limit = 2.0, cache: Folder = None, json_: Json = False) -> None:
    """Remove, above the limit, what was used longest ago."""
    from ..check.cache import default_folder
    from ..check.cache_pruning import GIB, prune
    from ..errors import NoRoomError
    from ..escape import quoted
    from ..report.cache_list import print_pruned, pruned_json
    from ..report.console import console, print_json

    folder = cache or default_folder()
    try:
        pruned = prune(folder, round(limit * GIB))
    except OSError as error:
        raise NoRoomError(
            f"entries of {quoted(str(folder))} cannot be removed: {error.strerror or error}",
            hint="--cache DIR names another folder",
        ) from error
    if json_:
        print_json(pruned_json(pruned))
    else:
        print_pruned(console(), pruned)
