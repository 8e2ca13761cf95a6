"""`specrepro show CASE`: everything a case says."""

from __future__ import annotations

from .options import Json, OneCase, Quiet, Verbose


def show(case: OneCase, json: Json = False, quiet: Quiet = False, verbose: Verbose = False) -> None:
    """Show a case: its parameters, variants and what must be seen.

    -q prints the first line only, -v adds the file and its hash.
    """
    from ..case import load_cases
    from ..errors import UsageError
    from ..escape import printable
    from ..report.case_page import case_json, case_page
    from ..report.console import console, print_json
    from ..scenarios.registry import declaration

    loaded, *others = load_cases([case])
    if others:
        names = ", ".join(one.case.id for one in (loaded, *others))
        raise UsageError(f"{printable(case)} holds several cases: {names}", hint="name one of them")
    declared = declaration(loaded.case.scenario)
    out = console()
    if json:
        print_json(case_json(loaded, declared))
    elif quiet:
        out.print(f"{loaded.case.id}: {printable(loaded.case.title)}", soft_wrap=True)
    else:
        out.print(case_page(loaded, declared))
        if verbose:
            file = f"file    {printable(str(loaded.path))}\nsha256  {loaded.sha256}"
            out.print(f"\n{file}", soft_wrap=True)
