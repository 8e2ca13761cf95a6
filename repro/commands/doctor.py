"""`specrepro doctor`: what this machine has for what specrepro does."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..errors import Exit
from .options import Json, Quiet

KernelLogFile = Annotated[
    Path | None,
    typer.Option("--kernel-log", metavar="FILE", help="Look at this file as the kernel log."),
]


def doctor(kernel_log: KernelLogFile = None, json_: Json = False, quiet: Quiet = False) -> None:
    """Say what works here, what does not, and what to do; 0 if a GPU lane can run, else 125."""
    from ... import __version__
    from ..device_lanes import no_device_lane
    from ..doctor import Machine, examine
    from ..report.console import console, print_json
    from ..report.doctor_page import print_doctor
    from ..watch.kernel_log import Place

    why = no_device_lane()
    place = Place(kernel_log) if kernel_log else Place.of(os.environ)
    record = {
        "schema": "specrepro/doctor@1",
        "version": __version__,
        "gpu_lane": not why,
        "checks": [asdict(check) for check in examine(Machine(os.environ, place), why)],
    }
    if json_:
        print_json(record)
    else:
        print_doctor(console(), record, quiet=quiet)
    raise typer.Exit(int(Exit.UNTESTABLE if why else Exit.OK))
