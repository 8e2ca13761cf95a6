"""`specrepro diagnose LOG…`: what failed first, which known faults it may be, what to try next."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..escape import printable, quoted
from .options import Json, Quiet, Ray, Runs, Verbose

if TYPE_CHECKING:
    from ..diagnose.chunks import Spread

Logs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LOG...",
        help="Log files, a saved page of an issue, a folder of logs, `-`, `latest`.",
    ),
]
Format = Annotated[
    str, typer.Option("--format", metavar="page|markdown", help="Markdown is for an issue.")
]
Explain = Annotated[
    str | None,
    typer.Option("--explain", metavar="CLASS", help="Print the page of a fault class, and end."),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Processes that read a folder of logs.")
]
InPlace = Annotated[
    bool,
    typer.Option("--in-place", help="With --ray: all nodes have the folder, and no log is sent."),
]
FORMATS = ("page", "markdown")


def diagnose(
    logs: Logs = None,
    format_: Format = "page",
    explain: Explain = None,
    jobs: Jobs = None,
    ray: Ray = None,
    in_place: InPlace = False,
    runs: Runs = None,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say what a log shows: the first failure, the fault classes it fits, what to try next.

    docs/diagnose.md says how the evidence adds up.
    """
    from ..report.console import print_json

    if explain is not None:
        from ..diagnose.lookup import class_text

        print(class_text(explain), end="")
        return
    if not logs:
        raise UsageError("no log is named", hint="specrepro diagnose crash.log dmesg.txt")
    if format_ not in FORMATS:
        raise UsageError(f"unknown format {quoted(format_)}; there is {', '.join(FORMATS)}")
    if in_place and ray is None:
        raise UsageError("--in-place is about the nodes of a cluster", hint="--ray ADDRESS")
    folders = any(Path(log).is_dir() for log in logs)
    if ray is not None and not folders:
        raise UsageError("--ray is for a folder of logs; a few are read here", hint="leave it out")
    from .. import store
    from ..diagnose.survey import survey

    with _told(quiet or json_) as told:
        spread = _spread(jobs or _processors(), ray, in_place) if folders else None
        report = survey(logs, store.runs_folder(runs), spread=spread, told=told)
    if json_:
        print_json(report.record)
    elif format_ == "markdown":
        from ..report.documents import document_of
        from ..report.markdown import markdown
        from ..report.redact import redact_record, this_machine

        record, removed = redact_record(report.record, this_machine())
        sys.stdout.write(markdown(document_of(record, removed)))
    else:
        from ..report.console import console
        from ..report.diagnose_page import print_diagnosis

        print_diagnosis(console(), report.record, quiet=quiet, verbose=verbose)
    raise typer.Exit(int(report.status))


def _spread(jobs: int, ray: str | None, in_place: bool) -> Spread | None:
    """Where a folder of logs is read; None for here. What that needs is loaded for it alone."""
    if jobs == 1 and ray is None:
        return None
    from ..diagnose.chunks import Spread
    from ..execution.choice import Choice

    return Spread(Choice(jobs, ray), in_place)


def _processors() -> int:
    import os

    return len(os.sched_getaffinity(0))


@contextmanager
def _told(silent: bool) -> Iterator[Callable[[str], None]]:
    """Shows how far a folder of logs is, on stderr, where somebody watches."""
    if silent or not sys.stderr.isatty():
        yield lambda line: None
        return
    from ..report.console import console

    with console(stderr=True).status("reading") as status:
        yield lambda line: status.update(printable(line))
