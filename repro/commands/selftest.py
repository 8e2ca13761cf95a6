"""`specrepro selftest`: known faults, planted to see which instrument sees them."""

from __future__ import annotations

import typer

from ..errors import Exit
from .options import Json, Quiet, Timeout, Verbose


def selftest(
    timeout: Timeout = None, json_: Json = False, quiet: Quiet = False, verbose: Verbose = False
) -> None:
    """Plant known faults and a clean control, and say which instrument saw which.

    Exit status 0 if all was seen, else 1. docs/doctor.md says what the table means.
    """
    from ... import __version__
    from ..report.console import console, print_json
    from ..report.selftest_page import print_selftest
    from ..selftest.session import TIMEOUT
    from ..selftest.session import selftest as planted
    from ..watch.nvml import devices

    record = planted(__version__, devices().reason, timeout or TIMEOUT)
    if json_:
        print_json(record)
    else:
        print_selftest(console(), record, quiet=quiet, verbose=verbose)
    raise typer.Exit(int(Exit.OK if record["ok"] else Exit.FAULT))
