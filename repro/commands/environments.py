"""`specrepro environments`: environments with builds in them: list them, take them away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Json

app = typer.Typer(
    help="The environments that builds run in.",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
)

Folder = Annotated[
    Path | None,
    typer.Option(
        "--environments",
        metavar="DIR",
        help="Where environments are kept [default: the cache folder].",
    ),
]
Limit = Annotated[
    float, typer.Option("--limit", metavar="GIB", min=0, help="What may stay, in GiB.")
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of an environment, or its beginning.")
]


@app.command("list")
def list_environments(environments: Folder = None, json_: Json = False) -> None:
    """List the environments, the one used last first."""
    from ..check.environments.session import Environments
    from ..report.console import console, print_json
    from ..report.environment_list import environments_json, print_environments

    shelf = Environments(environments).shelf
    shown = shelf.standing()
    if json_:
        print_json(environments_json(shown, shelf.usage()))
    else:
        print_environments(console(), shelf.root, shown, shelf.usage())


@app.command("remove")
def remove_environment(name: Name, environments: Folder = None, json_: Json = False) -> None:
    """Remove one environment, and what no other one shares with it."""
    from ..check.environments.session import Environments
    from ..report.console import console, print_json
    from ..report.environment_list import print_pruned, pruned_json

    pruned = Environments(environments, told=_told).remove(name)
    if json_:
        print_json(pruned_json(pruned))
    else:
        print_pruned(console(), pruned)


@app.command("prune")
def prune_environments(
    limit: Limit = 20.0, environments: Folder = None, json_: Json = False
) -> None:
    """Remove what was left half-made, and above the limit what was used longest ago."""
    from ..check.environments.session import Environments
    from ..report.console import console, print_json
    from ..report.environment_list import print_pruned, pruned_json

    pruned = Environments(environments, limit_gib=limit, told=_told).prune()
    if json_:
        print_json(pruned_json(pruned))
    else:
        print_pruned(console(), pruned)


def _told(line: str) -> None:
    from ..escape import printable
    from ..report.console import console

    console(stderr=True).print(printable(line), soft_wrap=True)
