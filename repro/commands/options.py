"""The options that several commands share, so that a word means the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..escape import quoted

if TYPE_CHECKING:
    from ..execution.choice import Choice

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the result.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More detail.")]
Runs = Annotated[
    Path | None,
    typer.Option("--runs", metavar="DIR", help="Where runs are kept [default: the state folder]."),
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Limit of one child process."),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of everything that is random.")]
Skip = Annotated[
    list[str] | None,
    typer.Option("--skip", metavar="CHECK", help="Leave a check out; may be repeated."),
]
Variants = Annotated[
    list[str] | None,
    typer.Option("--variant", metavar="NAME", help="Run this variant only; may be repeated."),
]
Lanes = Annotated[
    list[str] | None,
    typer.Option("--lane", metavar="NAME", help="Run in this lane only; may be repeated."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set a parameter; may be repeated."),
]
Device = Annotated[
    int | None,
    typer.Option(
        "--device",
        metavar="N",
        min=0,
        help="The GPU to use, as nvidia-smi counts [default: the first that may be used].",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, max=1024, help="So many at once on this machine."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Plant faults although others compute on the GPU.")
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep GPU core dumps in the run's folder.")]
Sweep = Annotated[bool, typer.Option("--sweep", help="Also run the points of the case's sweep.")]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray", metavar="ADDRESS", help="Run on a Ray cluster: HOST:PORT, auto, or local."
    ),
]
Cases = Annotated[
    list[str],
    typer.Argument(metavar="CASE...", help="Case files, folders of them, ids of shipped cases."),
]
OneCase = Annotated[
    str, typer.Argument(metavar="CASE", help="A case file, or the id of a shipped case.")
]


def placed(jobs: int | None, ray: str | None, device: int | None = None) -> Choice:
    """Where trials run, from the options; UsageError where they name two places."""
    from ..execution.choice import Choice

    if ray is not None and (jobs is not None or device is not None):
        other = "--jobs" if jobs is not None else "--device"
        raise UsageError(f"--ray and {other} name two places to run in")
    if jobs is not None and jobs > 1 and device is not None:
        raise UsageError("--device names one GPU, --jobs asks for several")
    return Choice(jobs, ray)


def assignments(texts: list[str] | None, option: str = "--set") -> dict[str, str]:
    """`["a=1", "b=x"]` of an option as a mapping; UsageError without `=`, or for a name twice."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UsageError(f"{option} needs NAME=VALUE, not {quoted(text)}")
        if name in found:
            raise UsageError(f"{option} {quoted(name)} is given twice")
        found[name] = value
    return found


def triple(option: str, text: str) -> tuple[int, int, int]:
    """`X`, `X,Y` or `X,Y,Z` of an option as three numbers, 1 where it gives none; UsageError."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"{option} needs X[,Y,Z], not {quoted(text)}")
    numbers = [int(part) for part in parts] + [1, 1]
    if not all(0 < number < 1 << 31 for number in numbers):
        raise UsageError(f"{option} needs numbers in 1..{(1 << 31) - 1}, not {quoted(text)}")
    return numbers[0], numbers[1], numbers[2]
