"""The text and the XML of one run of compute-sanitizer, read together.

The text decides: it alone has the header, the summary and what was not printed. The XML says what a
record's text left out, and a run whose text shows nothing while its XML does is not clean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from . import saved as saved_file
from .options import Files
from .text import Outcome, Parser, Record

LARGEST = 512 << 20  # bytes of text
LONGEST = 1 << 16  # bytes of a line; what is longer is read in pieces
MOST_RECORDS = 100_000


@dataclass(frozen=True, slots=True)
class Reading:
    """A run as it was read. outcome: of the text, made `unknown` where the two differ. notes: what
    could not be read, or does not fit together."""

    records: tuple[Record, ...]
    outcome: Outcome
    notes: tuple[str, ...] = ()


def read(files: Files) -> Reading:
    """Read what a run left. Never raises: what is missing or unreadable is a note."""
    parser = Parser()
    records: list[Record] = []
    notes: list[str] = []
    try:
        for number, line in _lines(files.log):
            for record in parser.feed(line, number):
                if len(records) < MOST_RECORDS:
                    records.append(record)
                elif not notes:
                    notes.append(f"more than {MOST_RECORDS} records")
    except _CutError as error:
        notes.append(str(error))
    except OSError as error:
        notes.append(f"no text of the tool ({error.strerror})")
    records += parser.finish()
    return together(records, parser.outcome(), saved_file.read(files.xml), notes)


def together(
    records: Sequence[Record], outcome: Outcome, saved: saved_file.Saved, notes: Sequence[str] = ()
) -> Reading:
    """Text and XML of a run as one."""
    said = list(notes)
    if saved.complaint:
        # without an error in a target that used CUDA there may be none to save
        if not saved.missing or outcome.verdict == "errors":
            said.append(f"{saved.complaint}; the text alone was read")
        return _told(records, outcome, said, "" if saved.missing else saved.complaint)
    if not records and saved.records:
        return _told(
            saved.records, outcome, said, "the XML has records of which the text says nothing"
        )
    if len(records) != len(saved.records):
        said.append(f"{len(records)} records in the text, {len(saved.records)} in the XML")
        return _told(records, outcome, said, "")
    if any(a.kind != b.kind and b.kind != "other" for a, b in zip(records, saved.records)):  # noqa: B905 - as many
        said.append("text and XML do not name the same kinds of record")
        return _told(records, outcome, said, "")
    filled = [_filled(a, b) for a, b in zip(records, saved.records, strict=True)]
    return _told(filled, outcome, said, "")


def _told(records: Sequence[Record], outcome: Outcome, notes: list[str], doubt: str) -> Reading:
    """A clean text that something speaks against is unknown."""
    if outcome.verdict == "clean" and (doubt or notes):
        outcome = replace(outcome, verdict="unknown", reason=doubt or notes[0])
    return Reading(tuple(records), outcome, tuple(notes))


def _filled(text: Record, saved: Record) -> Record:
    """A record of the text with what only the XML says of it."""
    fresh = {
        one.name: getattr(saved, one.name)
        for one in fields(text)
        if getattr(text, one.name) is None and getattr(saved, one.name) is not None
    }
    return replace(text, **fresh) if fresh else text


class _CutError(Exception):
    """The text was not read to its end."""


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        number = read_ = 0
        while raw := file.readline(LONGEST):
            number += 1
            read_ += len(raw)
            if read_ > LARGEST:
                raise _CutError(f"the text is larger than {LARGEST >> 20} MiB")
            yield number, raw.decode(errors="replace").rstrip("\r\n")
