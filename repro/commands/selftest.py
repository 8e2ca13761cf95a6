"""`specrepro selftest`: known faults, planted to see which instrument sees them."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import Exit
from .options import Device, Force, Json, Lanes, Quiet, Timeout, Verbose

Within = Annotated[
    float | None,
    typer.Option(
        "--within",
        metavar="SECONDS",
        min=1.0,
        help="On a GPU: what does not end by then is left out [default: 115].",
    ),
]


def selftest(
    lane: Lanes = None,
    timeout: Timeout = None,
    within: Within = None,
    device: Device = None,
    force: Force = False,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Plant known faults and a clean control, and say which instrument saw which.

    Exit status 0 if all was seen, else 1. docs/doctor.md says what the table means.
    """
    from ... import __version__
    from ..report.console import console, print_json
    from ..report.selftest_page import print_selftest
    from ..selftest.session import TIMEOUT, WITHIN, Asked
    from ..selftest.session import selftest as planted
    from ..watch.nvml import devices

    asked = Asked(timeout or TIMEOUT, tuple(lane or ()), device, force, within or WITHIN)
    record = planted(__version__, devices().reason, asked)
    if json_:
        print_json(record)
    else:
        print_selftest(console(), record, quiet=quiet, verbose=verbose)
    raise typer.Exit(int(Exit.OK if record["ok"] else Exit.FAULT))
