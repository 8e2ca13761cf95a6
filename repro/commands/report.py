"""`specrepro report`: a stored run as a text that can be sent."""

from __future__ import annotations

from collections import Counter
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
Compare = Annotated[
    str | None,
    typer.Option("--compare", metavar="OTHER", help="Say what changed since this stored run."),
]
Template = Annotated[
    str | None,
    typer.Option("--template", metavar="vllm-bug", help="Markdown in the form of a bug report."),
]
TEMPLATES = ("vllm-bug",)
FORMATS = ("markdown", "html", "json", "junit", "sarif")


def report(
    run: Which = "latest",
    format_: Format = "markdown",
    template: Template = None,
    compare: Compare = None,
    output: Output = None,
    no_redact: NoRedact = False,
    show_redactions: ShowRedactions = False,
    runs: Runs = None,
    quiet: Quiet = False,
) -> None:
    """Write a stored run as a report, without secrets and names of this machine."""
    from .. import store
    from ..report.console import console
    from ..report.documents import changes, compared, document_of, stored_record
    from ..report.redact import summary, this_machine

    if format_ not in FORMATS:
        raise UsageError(f"unknown format {quoted(format_)}; there is {', '.join(FORMATS)}")
    if template not in (None, *TEMPLATES):
        raise UsageError(f"unknown template {quoted(template or '')}; there is {TEMPLATES[0]}")
    if template is not None and format_ != "markdown":
        raise UsageError(f"--template is Markdown; --format {format_} is not")
    if template is not None and compare is not None:
        raise UsageError("--template is of one run, --compare of two")
    if compare is not None and format_ not in ("markdown", "html"):
        raise UsageError(f"--compare is told in markdown or html, not in {format_}")
    folder = store.runs_folder(runs)
    path = store.find(folder, run)
    known = None if no_redact else this_machine()
    record, removed = stored_record(path, known)
    if show_redactions:
        whole, _ = stored_record(path, None)
        for at, now in changes(whole, record):
            print(printable(f"{at}: {now}"))
        print(f"removed: {summary(removed)}")
        return
    if template is not None:
        from ..report.vllm_bug import vllm_bug

        text = vllm_bug(record, removed)
    elif compare is None:
        text = _written(format_, record, lambda: document_of(record, removed))
    else:
        other, also = stored_record(store.find(folder, compare), known)
        removed = dict(Counter(removed) + Counter(also))
        text = _written(format_, record, lambda: compared(other, record, removed))
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
            from ..report.html_page import html

            return html(document())
        case _:
            from ..report.markdown import markdown

            return markdown(document())


def _write(output: Path, text: str) -> None:
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {quoted(str(output))}: {error.strerror}") from error
