"""`specrepro check`: does a build of the engine have the defects of a case?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..escape import printable, quoted
from .options import Json, OneCase, Quiet, Runs, Timeout, Verbose

if TYPE_CHECKING:
    from ..check.depth import Depth as Door

Vllm = Annotated[
    str,
    typer.Option(
        "--vllm",
        metavar="BUILD",
        help="`installed`, a version, a range 0.11.0..0.33.0, a list with commas, a path.",
    ),
]
Depth = Annotated[
    str, typer.Option("--depth", metavar="source", help="How deep to look: the code itself.")
]
Defects = Annotated[
    list[str] | None,
    typer.Option("--defect", metavar="ID", help="Ask for this defect only; may be repeated."),
]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="NAME=VALUE", help="Fix a setting of the engine."),
]
DefaultOnly = Annotated[
    bool, typer.Option("--default-only", help="Ask about what acts by default.")
]
GitBisect = Annotated[
    bool,
    typer.Option("--git-bisect", help="Statuses for `git bisect run`: 128 instead of 2 and 3."),
]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Where files of builds are kept."),
]
Offline = Annotated[bool, typer.Option("--offline", help="Only what the cache holds.")]
FullDownload = Annotated[
    bool,
    typer.Option("--allow-full-download", help="Download a whole build where parts cannot be had."),
]
DEPTHS = ("source",)


def check(
    case: OneCase,
    vllm: Vllm = "installed",
    depth: Depth = "source",
    defect: Defects = None,
    with_: With = None,
    default_only: DefaultOnly = False,
    git_bisect: GitBisect = False,
    cache: Cache = None,
    offline: Offline = False,
    allow_full_download: FullDownload = False,
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
    from ..report.check_page import print_check
    from ..report.console import console, print_json

    looking = _depth(depth)
    loaded = load_cases([case])
    if len(loaded) != 1:
        raise UsageError(f"{quoted(case)} holds {len(loaded)} cases; check takes one")
    question = survey.questions(loaded[0], defect or (), _settings(with_), default_only)
    with (
        _told(quiet or json_) as told,
        Builds(
            cache=cache, offline=offline, allow_full_download=allow_full_download, told=told
        ) as builds,
    ):
        report = survey.check(
            loaded[0],
            builds.versions(vllm),
            builds,
            question,
            store.runs_folder(runs),
            looking,
            seconds=timeout,
            told=told,
        )
    if json_:
        print_json(report.record)
    else:
        print_check(console(), report.record, quiet=quiet, verbose=verbose)
    raise typer.Exit(int(report.status))


def _depth(name: str) -> Door:
    """The depth of a name; what each needs is loaded here alone."""
    if name == "source":
        from ..check.source_depth import SourceDepth

        return SourceDepth()
    raise UsageError(f"unknown depth {quoted(name)}; there is {', '.join(DEPTHS)}")


def _settings(texts: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UsageError(f"--with needs NAME=VALUE, not {quoted(text)}")
        if name in found:
            raise UsageError(f"--with {quoted(name)} is given twice")
        found[name] = value
    return found


@contextmanager
def _told(silent: bool) -> Iterator[Callable[[str], None]]:
    """Shows what takes long, on stderr: one moving line, nothing where nobody watches."""
    from ..report.console import console

    out = console(stderr=True)
    if silent or not out.is_terminal or out.is_dumb_terminal:
        yield lambda line: None
        return
    with out.status("looking for the build") as status:
        yield lambda line: status.update(printable(line))
