"""The journals beside those of the lines: trials of variations of the builds at a boundary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..escape import quoted
from .journal import Journal, read

STAGE = "variation"


@dataclass(frozen=True, slots=True)
class Beside:
    """The journal of the boundary between two builds."""

    bad: str
    good: str
    journal: Journal


def open_journal(folder: Path, key: str, bad: str, good: str) -> Journal:
    """The journal of a boundary, made where there is none. key: of the session. UsageError where it
    is of another search."""
    header = {"asked": key, "line": STAGE, "bad": bad, "good": good}
    return Journal.open(folder / f"{STAGE}-{bad}-{good}.jsonl", header)


def kept(folder: Path) -> Iterator[Beside]:
    """The journals of a session, by their names. UsageError for one that is damaged."""
    for path in sorted(folder.glob(f"{STAGE}-*.jsonl")):
        written = read(path)
        if written.size:  # not even its header is whole: nothing was tried
            bad, good = ends(path, written.search)
            yield Beside(bad, good, Journal(path, list(written.events)))


def ends(path: Path, search: Mapping[str, Any]) -> tuple[str, str]:
    """The two builds that the header of such a journal names. UsageError where it does not."""
    bad, good = search.get("bad"), search.get("good")
    if not isinstance(bad, str) or not isinstance(good, str):
        raise UsageError(f"a journal in {quoted(path.name)} does not say of which boundary it is")
    return bad, good
