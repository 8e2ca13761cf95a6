"""`specrepro report`: a stored run as a text that can be sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UsageError
from ..escape import printable, quoted
from .options import Quiet, Runs

if TYPE_CHECKING:
    from ..report.document import Document

Which = Annotated[str, typer.Argument(metavar="RUN", help="`latest`, an id or its beginning.")]
Format = Annotated[
    str, typer.Option("--format", metavar="FORMAT", help="markdown, html, json, junit or sarif.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")
]
NoRedact = Annotated[
    bool, typer.Option("--no-redact", help="Leave secrets and names of this machine in it.")
]
ShowRedactions = Annotated[
    bool, typer.Option("--show-redactions", help="List what is removed, and where; no report.")
]
FORMATS = ("markdown", "html", "json", "junit", "sarif")


def report(
    run: Which = "latest",
    format_: Format = "markdown",
    output: Output = None,
    no_redact: NoRedact = False,
    show_redactions: ShowRedactions = False,
    runs: Runs = None,
    quiet: Quiet = False,
) -> None:
    """Write a stored run as a report, without secrets and names of this machine."""
    from .. import store
    from ..report.console import console
    from ..report.documents import changes, document_of, stored_record
    from ..report.redact import summary, this_machine

    if format_ not in FORMATS:
        raise UsageError(f"unknown format {quoted(format_)}; there is {', '.join(FORMATS)}")
    path = store.find(store.runs_folder(runs), run)
    record, removed = stored_record(path, None if no_redact else this_machine())
    if show_redactions:
        whole, _ = stored_record(path, None)
        for at, now in changes(whole, record):
            print(printable(f"{at}: {now}"))
        print(f"removed: {summary(removed)}")
        return
    text = _written(format_, record, lambda: document_of(record, removed))
    if output is None:
        print(text, end="")
    else:
        _write(output, text)
    if not quiet and removed:
        console(stderr=True).print(f"removed: {summary(removed)}", soft_wrap=True, style="dim")


def _written(format_: str, record: Mapping[str, Any], document: Callable[[], Document]) -> str:
    match format_:
        case "json":
            import json

            return json.dumps(record, indent=1, allow_nan=False) + "\n"
        case "junit":
            from ..report.junit import junit

            return junit(record)
        case "sarif":
            from ..report.sarif import sarif

            return sarif(record)
        case "html":
            from ..report.html import html

            return html(document())
        case _:
            from ..report.markdown import markdown

            return markdown(document())


def _write(output: Path, text: str) -> None:
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {quoted(str(output))}: {error.strerror}") from error
