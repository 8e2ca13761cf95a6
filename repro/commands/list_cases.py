"""`specrepro list`: the cases that come with the package."""

from __future__ import annotations

from .options import Json, Quiet, Verbose


def list_cases(json: Json = False, quiet: Quiet = False, verbose: Verbose = False) -> None:
    """List the shipped cases. -q prints their ids only, -v what each report claims."""
    from ..case import load_case, shipped_cases
    from ..report.case_page import case_table, list_json
    from ..report.console import console, print_json

    cases = [load_case(path) for path in shipped_cases()]
    if json:
        print_json(list_json(cases))
    elif quiet:
        for loaded in cases:
            console().print(loaded.case.id, soft_wrap=True)
    else:
        console().print(case_table(cases, claims=verbose))
