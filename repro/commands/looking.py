"""What the commands that look at builds of an engine share: options, one moving line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ..escape import printable

Depth = Annotated[
    str,
    typer.Option(
        "--depth",
        metavar="NAME",
        help="How deep to look: source, the code; kernel, its kernels; engine, all of it.",
    ),
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
Pre = Annotated[bool, typer.Option("--pre", help="Take pre-releases in.")]
Yanked = Annotated[bool, typer.Option("--yanked", help="Take yanked releases in.")]
Offline = Annotated[bool, typer.Option("--offline", help="Only what the cache holds.")]
FullDownload = Annotated[
    bool,
    typer.Option("--allow-full-download", help="Download a whole build where parts cannot be had."),
]
Python = Annotated[
    Path | None,
    typer.Option(
        "--python", metavar="PATH", help="Look at the vLLM that this Python finds, not at ours."
    ),
]
Model = Annotated[
    Path | None,
    typer.Option("--model", metavar="DIR", help="Depth engine: your model, not the case's."),
]
Controls = Annotated[
    bool, typer.Option("--controls", help="Depth engine: run the experiments of the case too.")
]


def project_of(depth: str) -> str:
    """The package whose releases a version names: an engine is one for this machine."""
    if depth != "engine":
        return "vllm"
    from ..check.environments.session import default_package

    return default_package()


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
