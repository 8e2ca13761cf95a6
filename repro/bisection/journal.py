"""The journal of a search: a header that says of what, then one line for each event, in order.

The header holds what tells one search from another, and the search itself, so that a journal can
be played again wherever it is read.

Lines are appended, each forced to the disk before the next trial starts, and never rewritten: to
take something back is a line too. Whatever ends the process, at most the line being written is
cut; it has no line end, is no part of the journal, and is cut off before the next one is written.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..escape import printable, quoted
from .lines import from_line, to_line
from .verdicts import Event

SCHEMA = "specrepro/bisect-journal@1"
LARGEST = 64 << 20  # bytes
BEGINS = '{"schema"'  # the first line of a journal; that of an event begins otherwise
VALUE = 200  # characters of JSON, beyond which the header holds a hash


@dataclass(frozen=True, slots=True)
class Written:
    """What a journal holds. search: what its header says; size: bytes of its whole lines. quest:
    the search as `session.kept` writes it, {} where the header holds none."""

    search: dict[str, Any]
    events: tuple[Event, ...]
    size: int
    quest: dict[str, Any] = field(default_factory=dict)


class Journal:
    """A journal that is written to, by one process: who opens it holds the session.

    events: those in it, in order, with those that were appended.
    """

    def __init__(self, path: Path, events: list[Event]) -> None:
        self.path = path
        self.events = events

    @classmethod
    def open(
        cls, path: Path, search: Mapping[str, Any], quest: Mapping[str, Any] | None = None
    ) -> Journal:
        """The journal of a search, made where there is none.

        search: all that the meaning of its verdicts hangs on (case, candidates, options), as JSON
        values. quest: the search itself, kept for who plays a new journal again. UsageError where
        the journal is of another search, is damaged or cannot be had.
        """
        wanted = {key: _short(value) for key, value in search.items()}
        written = read(path) if path.exists() else None
        if written is None or written.size == 0:
            header = {"schema": SCHEMA, "search": wanted, "quest": dict(quest or {})}
            _write(path, 0, json.dumps(header, allow_nan=False))
            _sync_folder(path.parent)
            return cls(path, [])
        other = [
            key
            for key in sorted({*wanted, *written.search})
            if written.search.get(key) != wanted.get(key)
        ]
        if other:
            raise UsageError(
                f"{quoted(path.name)} is the journal of another search: "
                f"{', '.join(printable(key) for key in other)} differ",
                hint="its own command goes on with it; another search needs a session of its own",
            )
        return cls(path, list(written.events))

    def append(self, event: Event) -> None:
        """Write an event down. UsageError where the disk does not take it; it is not in it then."""
        _write(self.path, _whole(self.path), to_line(event))
        self.events.append(event)


def read(path: Path) -> Written:
    """What a journal holds, a cut last line left out; nothing where not even its header is whole.

    UsageError where it cannot be read, is no journal, is several, or has a line that is damaged.
    """
    found = read_all(path)
    if len(found) > 1:
        raise UsageError(f"{quoted(str(path))} holds {len(found)} journals, not one")
    return found[0] if found else Written({}, (), 0)


def read_all(path: Path) -> list[Written]:
    """The journals that a file holds one after the other, as `specrepro session log` prints those
    of a session. UsageError as for `read`."""
    try:
        size = path.stat().st_size
        if size > LARGEST or not path.is_file():
            raise UsageError(f"{quoted(str(path))} is no journal: not a file below {LARGEST} bytes")
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {quoted(str(path))}: {error.strerror}") from error
    whole = content[: content.rfind(b"\n") + 1]
    found: list[Written] = []
    lines = whole.decode("utf-8", errors="replace").removesuffix("\n").split("\n")
    for number, line in enumerate(lines if whole else [], start=1):
        if not found or line.startswith(BEGINS):
            search, quest = _header(path, line)
            found.append(Written(search, (), 0, quest))
            events: list[Event] = []
        else:
            events.append(_event(path, number, line))
        size = found[-1].size + len(line.encode()) + 1
        found[-1] = replace(found[-1], events=tuple(events), size=size)
    return found


def _event(path: Path, number: int, line: str) -> Event:
    try:
        return from_line(line)
    except ValueError as error:
        raise UsageError(
            f"damaged: {printable(str(error))}",
            where=f"{printable(str(path))}:{number}",
            hint="a journal is only written by specrepro; begin a new session",
        ) from error


def _header(path: Path, line: str) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        header = json.loads(line) if len(line) <= LARGEST else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        header = {}
    search, quest = header.get("search"), header.get("quest", {})
    if not isinstance(search, dict) or not isinstance(quest, dict):
        raise UsageError(
            f"{quoted(str(path))} is no journal of a search", hint=f"its first line says {SCHEMA}"
        )
    return search, quest


def _short(value: Any) -> Any:
    """A value as the header holds it: itself, or the hash of what is long."""
    text = json.dumps(value, sort_keys=True, allow_nan=False)
    if len(text) <= VALUE:
        return json.loads(text)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _whole(path: Path) -> int:
    """Bytes of the whole lines of a file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _refused(path, error) from error
    return content.rfind(b"\n") + 1


def _write(path: Path, at: int, line: str) -> None:
    """Make a line the last one, after `at` bytes of whole lines."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _refused(path, error) from error
    start = at
    try:
        os.ftruncate(descriptor, at)
        left = line.encode("ascii") + b"\n"
        while left:
            done = os.pwrite(descriptor, left, at)
            left, at = left[done:], at + done
        os.fsync(descriptor)
    except OSError as error:
        # a piece of a line is no harm, a line that nobody knows of would be
        with suppress(OSError):
            os.ftruncate(descriptor, start)
        raise _refused(path, error) from error
    finally:
        os.close(descriptor)


def _refused(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot write {quoted(str(path))}: {error.strerror}",
        hint="what was written before is whole; the same command goes on from there",
    )


def _sync_folder(folder: Path) -> None:
    """Force the name of a new file to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
