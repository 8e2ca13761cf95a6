"""`specrepro attach`: a stored run as a comment on an issue, shown before it is posted."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import Exit, UsageError
from ..escape import printable
from .options import Json, Quiet, Runs

if TYPE_CHECKING:
    from ..github.post import Posted

Which = Annotated[str, typer.Argument(metavar="RUN", help="`latest`, an id or its beginning.")]
IssueOption = Annotated[
    str | None,
    typer.Option("--issue", metavar="OWNER/REPO#N|URL", help="Comment on this issue."),
]
NewIssue = Annotated[
    str | None,
    typer.Option("--new-issue", metavar="OWNER/REPO", help="Open an issue, in vLLM's bug form."),
]
Title = Annotated[
    str | None, typer.Option("--title", metavar="TEXT", help="The title of the new issue.")
]
Gist = Annotated[
    bool, typer.Option("--gist", help="Put the whole record into a secret gist, and link it.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Post without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the text; post nothing.")]


ATTACHED = "attached.ndjson"  # in the run: what was posted, and where


@dataclass(frozen=True, slots=True)
class Text:
    """What will be posted. marked: its hidden mark. record: without what was removed."""

    title: str
    body: str
    marked: str
    record: Mapping[str, Any]
    removed: Mapping[str, int]


def attach(
    run: Which = "latest",
    issue: IssueOption = None,
    new_issue: NewIssue = None,
    title: Title = None,
    gist: Gist = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    runs: Runs = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Post a stored run as a comment on an issue, or change the comment it was posted as.

    The text is shown first, without secrets and names of this machine. It stays in the run.
    """
    from .. import store
    from ..github.issue import issue as issue_of
    from ..github.issue import repository
    from ..report.console import console, print_json
    from ..report.redact import summary

    if (issue is None) == (new_issue is None):
        raise UsageError(
            "where to? --issue or --new-issue says it",
            hint="specrepro attach latest --issue OWNER/REPO#NUMBER",
        )
    if title is not None and new_issue is None:
        raise UsageError("--title is for --new-issue")
    target = issue_of(issue, os.environ) if issue is not None else None
    opened = repository(new_issue, os.environ) if new_issue is not None else None
    path = store.find(store.runs_folder(runs), run)
    text = _text(path, opened is not None, title)
    (path / "attach.md").write_text(text.body, encoding="utf-8")
    err = console(stderr=True)
    if dry_run:
        print(text.body, end="")
        err.print(f"removed: {summary(text.removed)}", soft_wrap=True, style="dim")
        return
    where = str(target or opened)
    if not yes:
        err.print(printable_lines(text.body), soft_wrap=True, markup=False, highlight=False)
        err.print(f"removed: {summary(text.removed)}", soft_wrap=True, style="dim")
        if opened is not None:
            err.print(f"title: {printable(text.title)}", soft_wrap=True, markup=False)
        if gist:
            err.print("with it goes the whole record, as a secret gist, and a line that links it")
        if not _agreed(f"Post this to {where}?"):
            err.print(f"not posted; the text is in {printable(str(path / 'attach.md'))}")
            raise typer.Exit(int(Exit.FAULT))
    posted = _post(text, target, opened, gist, path, err.print)
    if json_:
        print_json({"schema": "specrepro/attach@1", "url": posted.url, "how": posted.how,
                    "removed": dict(text.removed)})  # fmt: skip
    elif quiet:
        print(printable(posted.url))
    else:
        print(f"{posted.how}: {printable(posted.url)}")


def printable_lines(text: str) -> str:
    """A text as it may be shown on a terminal, line by line, without what only breaks mentions."""
    from ..report.gfm import BREAK

    return "\n".join(printable(line) for line in text.replace(BREAK, "").split("\n"))


def _text(path: Path, form: bool, title: str | None) -> Text:
    from ..github.post import mark
    from ..report.document import plain
    from ..report.documents import document_of, stored_record
    from ..report.markdown import markdown
    from ..report.redact import redact, this_machine
    from ..report.vllm_bug import TITLE, vllm_bug

    known = this_machine()
    record, removed = stored_record(path, known)
    document = document_of(record, removed)
    body = vllm_bug(record, removed) if form else markdown(document)
    said = title if title is not None else TITLE + plain(document.result)
    names = record.get("case") or "-".join(str(case["id"]) for case in record.get("cases", ()))
    marked = mark(str(names)[:90], path.name)
    return Text(redact(said, known).text[:250], body, marked, record, removed)


def _agreed(question: str) -> bool:
    """Whether the person at the terminal says yes. UsageError where there is none."""
    if not sys.stdin.isatty():
        raise UsageError("nobody is there to be asked", hint="--yes posts without asking")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _post(text: Text, target: Any, opened: Any, gist: bool, path: Path, told: Any) -> Posted:
    import json

    from ..github import post
    from ..github.client import Client
    from ..github.transport import transport

    host = (target.repository if target is not None else opened).host
    client = Client(transport(host, os.environ), told)
    body = text.body
    if gist:
        post.reachable(client, target or opened)
        whole = json.dumps(text.record, indent=1, allow_nan=False)
        files = {f"{path.name}.json": whole}
        linked = post.gist(client, f"specrepro {path.name}", files, _gist_before(path)).url
        body += f"\n<sub>the whole record: <{linked}></sub>\n"
        _log(path, {"gist": linked})
    if target is not None:
        posted = post.comment(client, target, text.marked, body)
    else:
        posted = post.new_issue(client, opened, text.title, text.marked, body)
    _log(path, {"url": posted.url, "how": posted.how})
    return posted


def _log(path: Path, said: Mapping[str, Any]) -> None:
    """Keep in the run what was made and where."""
    import json

    from .. import store

    with (path / ATTACHED).open("a", encoding="utf-8") as log:
        log.write(json.dumps({**said, "at": store.now()}) + "\n")


def _gist_before(path: Path) -> str | None:
    """The id of the gist that was made of this run before; None where none is known of."""
    import json

    if not (path / ATTACHED).is_file():
        return None
    found = None
    for line in (path / ATTACHED).read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            said = json.loads(line)
        except ValueError:  # a line that was cut off as it was written
            continue
        if isinstance(said, dict) and isinstance(said.get("gist"), str):
            found = said["gist"].rpartition("/")[2]
    return found
