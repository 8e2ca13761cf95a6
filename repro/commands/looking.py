"""What the commands that look at builds of an engine share: options, depths, one moving line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..escape import printable, quoted

if TYPE_CHECKING:
    from ..check.depth import Depth as Door

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


def depth_of(name: str) -> Door:
    """The depth of a name; what each needs is loaded here alone."""
    if name == "source":
        from ..check.source_depth import SourceDepth

        return SourceDepth()
    raise UsageError(f"unknown depth {quoted(name)}; there is {', '.join(DEPTHS)}")


@contextmanager
def told_of(silent: bool) -> Iterator[Callable[[str], None]]:
    """Shows what takes long, on stderr: one moving line, nothing where nobody watches."""
    from ..report.console import console

    out = console(stderr=True)
    if silent or not out.is_terminal or out.is_dumb_terminal:
        yield lambda line: None
        return
    with out.status("looking for the build") as status:
        yield lambda line: status.update(printable(line))
