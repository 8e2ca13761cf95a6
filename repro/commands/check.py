"""`specrepro check`: does a build of the engine have the defects of a case?"""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import UsageError
from ..escape import quoted
from .looking import (
    Cache,
    Controls,
    DefaultOnly,
    Defects,
    Depth,
    FullDownload,
    Model,
    Offline,
    Pre,
    Python,
    With,
    Yanked,
    project_of,
    told_of,
)
from .options import Json, OneCase, Quiet, Ray, Runs, Timeout, Verbose, assignments

# the first release that the probes were written for
OLDEST = "0.11.0"
Vllm = Annotated[
    str,
    typer.Option(
        "--vllm",
        metavar="BUILD",
        help="`installed`, a version, a range 0.11.0..0.33.0, a list with commas, a path.",
    ),
]
Scan = Annotated[
    bool,
    typer.Option(
        "--scan", help=f"Check every release from {OLDEST} on, or those of --vllm, as a matrix."
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", min=1, max=64, help="Look at N builds at once."),
]
GitBisect = Annotated[
    bool,
    typer.Option("--git-bisect", help="Statuses for `git bisect run`: 128 instead of 2 and 3."),
]


def check(
    case: OneCase,
    vllm: Vllm = "installed",
    scan: Scan = False,
    depth: Depth = "source",
    defect: Defects = None,
    with_: With = None,
    default_only: DefaultOnly = False,
    git_bisect: GitBisect = False,
    cache: Cache = None,
    offline: Offline = False,
    pre: Pre = False,
    yanked: Yanked = False,
    python: Python = None,
    model: Model = None,
    controls: Controls = False,
    allow_full_download: FullDownload = False,
    jobs: Jobs = None,
    ray: Ray = None,
    timeout: Timeout = None,
    runs: Runs = None,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say whether a build of vLLM has the defects of a case, from the build's own code."""
    # the status of a command that fails is translated in ending.py, before options are read
    del git_bisect
    from .. import store
    from ..case import load_cases
    from ..check import survey
    from ..check.builds import Builds
    from ..check.depths import depth_of
    from ..check.environments.user_python import place
    from ..report.check_page import print_check
    from ..report.console import console, print_json

    if python is not None and vllm != "installed":
        raise UsageError("--python and --vllm both say which build", hint="leave one of them out")
    if python is not None and ray is not None:
        raise UsageError("--python is a file of this machine", hint="leave --python or --ray out")
    if scan and depth == "engine" and vllm == "installed":
        raise UsageError(
            "--scan --depth engine installs every release it looks at",
            hint="--vllm A..B says which",
        )
    if scan and vllm == "installed":
        vllm = f"{OLDEST}.."
    loaded = load_cases([case])
    if len(loaded) != 1:
        raise UsageError(f"{quoted(case)} holds {len(loaded)} cases; check takes one")
    question = survey.questions(loaded[0], defect or (), assignments(with_, "--with"), default_only)
    at = place(python) if python is not None and depth != "engine" else None
    with (
        told_of(quiet or json_) as told,
        Builds(
            cache=cache,
            offline=offline,
            allow_full_download=allow_full_download,
            told=told,
            place=at,
            prereleases=pre,
            yanked=yanked,
            project=project_of(depth),
        ) as builds,
    ):
        looking = depth_of(
            depth,
            python=python,
            model=model,
            controls=controls,
            collect=True,
            cache=cache,
            told=told,
        )
        specs = builds.versions(vllm)
        apart = None
        if ray is not None or (jobs or 1) > 1 < len(specs):
            from ..check.apart import Apart, How
            from ..execution.choice import Choice

            how = How(depth, model, controls, None, True, cache, offline, allow_full_download, pre,
                      yanked)  # fmt: skip
            apart = Apart(how, Choice(jobs, ray)).rows
        report = survey.check(
            loaded[0],
            specs,
            builds,
            question,
            store.runs_folder(runs),
            looking,
            seconds=timeout,
            told=told,
            apart=apart,
        )
    if json_:
        print_json(report.record)
    else:
        print_check(console(), report.record, quiet=quiet, verbose=verbose)
    raise typer.Exit(int(report.status))
