"""`specrepro run`: bring the faults of cases about, in every lane this machine has."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import UsageError
from .options import (
    Device,
    Force,
    Jobs,
    Json,
    Keep,
    Lanes,
    Quiet,
    Ray,
    Runs,
    Seed,
    Set,
    Sweep,
    Timeout,
    Variants,
    Verbose,
    assignments,
    placed,
)

OptionalCases = Annotated[
    list[str] | None,
    typer.Argument(metavar="CASE...", help="Case files, folders of them, ids of shipped cases."),
]
LONGEST_TIMEOUT = 7 * 24 * 3600

StopAtFirst = Annotated[
    bool, typer.Option("--stop-at-first", help="The emulator ends a trial at its first finding.")
]
Resume = Annotated[
    str | None,
    typer.Option("--resume", metavar="RUN", help="Go on with a run that was cut off."),
]


def run(
    cases: OptionalCases = None,
    variant: Variants = None,
    lane: Lanes = None,
    set_: Set = None,
    sweep: Sweep = False,
    stop_at_first: StopAtFirst = False,
    seed: Seed = None,
    timeout: Timeout = None,
    device: Device = None,
    jobs: Jobs = None,
    ray: Ray = None,
    force: Force = False,
    keep: Keep = False,
    runs: Runs = None,
    resume: Resume = None,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Bring reported faults about and say, for each case, whether all came out as its file says."""
    from .. import store
    from ..case import load_cases
    from ..report.console import console, print_json
    from ..report.progress import progress
    from ..report.run_page import print_run
    from ..run import TIMEOUT, Selection
    from ..run import resume as go_on
    from ..run import run as start

    if timeout is not None and not timeout <= LONGEST_TIMEOUT:
        raise UsageError(f"--timeout must be a number of seconds up to {LONGEST_TIMEOUT}")
    folder = store.runs_folder(runs)
    if resume is not None:
        told_anew = (cases, variant, lane, set_, sweep, force, keep)
        if any(told_anew) or any(one is not None for one in (seed, timeout, device)):
            raise UsageError("--resume takes cases and options from the run that was cut off")
        path = store.find(folder, resume)
        with progress(quiet or json_) as told:
            anew = jobs is not None or ray is not None
            report = go_on(path, told, placed(jobs, ray) if anew else None)
    else:
        if not cases:
            raise UsageError(
                "no case is named", hint="specrepro list shows the shipped ones; a folder will do"
            )
        overrides = assignments(set_)
        if seed is not None:
            if "seed" in overrides:
                raise UsageError("--seed and --set seed say two things")
            overrides["seed"] = str(seed)
        choice = placed(jobs, ray, device)
        selection = Selection(
            overrides=overrides,
            variants=tuple(variant or ()),
            lanes=tuple(lane or ()),
            sweep=sweep,
            stop_at_first=stop_at_first,
            timeout=timeout or TIMEOUT,
            device=device,
            force=force,
            keep=keep,
            jobs=choice.jobs,
            ray=choice.ray,
        )
        loaded = load_cases(cases)
        with progress(quiet or json_) as told:
            report = start(loaded, selection, folder, told)
    if json_:
        print_json(report.record)
    else:
        print_run(console(), report.record, quiet=quiet, verbose=verbose)
    raise typer.Exit(int(report.status))
