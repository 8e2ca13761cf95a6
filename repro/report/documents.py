"""The report of any stored run: its record, without what must not leave, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ... import __version__
from .. import store
from ..errors import RunNotFoundError
from .document import Bullets, Code, Document, Facts, Line, Mono, Section, Strong
from .redact import Known, redact_record


def stored_record(path: Path, known: Known | None) -> tuple[dict[str, Any], dict[str, int]]:
    """The record of a run and how much was removed of each kind; `known` None keeps everything.

    Of a run that was cut off: what was asked, and what it left. RunNotFoundError if it is no run.
    """
    record = cut_off(path) if not (path / store.RESULT).is_file() else store.load(path)
    return (record, {}) if known is None else redact_record(record, known)


def document_of(record: Mapping[str, Any], removed: Mapping[str, int]) -> Document:
    """The document of a record; RunNotFoundError for a kind that has no report."""
    schema = record["schema"]
    document: Document
    match schema:
        case "specrepro/run@1":
            from .run_document import run_document

            document = run_document(record)
        case "specrepro/check@1":
            from .check_document import check_document

            document = check_document(record)
        case "specrepro/bisect@1":
            from .bisect_document import bisect_document

            document = bisect_document(record)
        case "specrepro/diagnose@1":
            from .diagnose_document import diagnose_document

            document = diagnose_document(record)
        case "specrepro/watch@1":
            from .watch_document import watch_document

            document = watch_document(record)
        case "specrepro/cut@1":
            document = _cut_document(record)
        case _:
            raise RunNotFoundError(f"there is no report of {schema}", hint="specrepro runs list")
    return replace(document, removed=tuple(removed.items()))


def compared(
    old: Mapping[str, Any], new: Mapping[str, Any], removed: Mapping[str, int]
) -> Document:
    """The document of what changed from one record to the other."""
    from .compare_document import compare_document

    return replace(compare_document(old, new), removed=tuple(removed.items()))


def changes(before: Any, after: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """(path, what stands there now) of every text of a record that redaction changed."""
    if isinstance(before, Mapping):
        for key, value in before.items():
            yield from changes(value, after[key], f"{at}.{key}" if at else str(key))
    elif isinstance(before, list | tuple):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from changes(one, other, f"{at}[{number}]")
    elif before != after:
        yield at, str(after)


def cut_off(path: Path) -> dict[str, Any]:
    """What is known of a run without a result: specrepro/cut@1."""
    asked = store.request(path)
    left = sorted(
        str(file.relative_to(path))
        for file in path.rglob("*")
        if file.is_file() and not file.is_symlink() and file.name != store.LOCK
    )
    return {
        "schema": "specrepro/cut@1",
        "run": {
            "id": path.name,
            "path": str(path),
            "command": str(asked.get("command", "?")),
            "version": __version__,
            "started": str(asked.get("started", "?")),
        },
        "at_work": store.in_use(path),
        "asked": {k: v for k, v in asked.items() if k not in ("command", "started")},
        "left": left,
    }


def _said(value: Any) -> str:
    """What was asked for, in words; "" for what was left as it is."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {said}" for key, one in value.items() if (said := _said(one)))
    if isinstance(value, list | tuple):
        return " ".join(str(one) for one in value)
    return str(value) if value not in (None, False, "") else ""


def _cut_document(record: Mapping[str, Any]) -> Document:
    run = record["run"]
    command = str(run["command"])
    now = "is still at work" if record["at_work"] else "was cut off before it had a result"
    again = f"specrepro run --resume {run['id']}" if command == "run" else f"specrepro {command} …"
    rows: list[tuple[str, Line]] = [
        (str(name), (Mono(said),))
        for name, value in record["asked"].items()
        if (said := _said(value))
    ]
    left: list[Line] = [(Mono(str(name)),) for name in record["left"]]
    return Document(
        title=f"specrepro {command}: no result",
        result=(f"This run of specrepro {command} ", Strong(now), ": nothing can be said from it."),
        tone="unknown",
        parts=[
            Facts([("started", (str(run["started"]),)), *rows]),
            Section("Go on", [Code(again, "sh")]),
            Section("What it left", [Bullets(left)]),
        ],
        whole=f"specrepro runs list # {run['id']}",
        run=str(run["id"]),
        version=str(run["version"]),
    )
