"""`specrepro schema`: the JSON Schema of a case file."""

from __future__ import annotations

from .options import Json, Quiet, Verbose


def schema(json: Json = False, quiet: Quiet = False, verbose: Verbose = False) -> None:
    """Print the JSON Schema of a case file (JSON with or without --json)."""
    from ..case import case_schema
    from ..report.console import print_json

    print_json(case_schema())
