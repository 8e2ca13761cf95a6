"""The journal of a search: a header that says of what, then one line for each event, in order.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..escape import printable, quoted
from .lines import LONGEST, from_line, to_line
from .verdicts import Event

SCHEMA = "specrepro/bisect-journal@1"
LARGEST = 64 << 20  # bytes
VALUE = 200  # characters of JSON, beyond which the header holds a hash


@dataclass(frozen=True, slots=True)
class Written:
    """What a journal holds. search: what its header says; size: bytes of its whole lines."""

    search: dict[str, Any]
    events: tuple[Event, ...]
    size: int


class Journal:
    """A journal that is written to, by one process: who opens it holds the session.

    events: those in it, in order, with those that were appended.
    """

    def __init__(self, path: Path, events: list[Event]) -> None:
        self.path = path
        self.events = events

    @classmethod
    def open(cls, path: Path, search: Mapping[str, Any]) -> Journal:
        """The journal of a search, made where there is none.

        search: all that the meaning of its verdicts hangs on (case, candidates, options), as JSON
        values. UsageError where the journal is of another search, is damaged or cannot be had.
        """
        wanted = {key: _short(value) for key, value in search.items()}
        written = read(path) if path.exists() else None
        if written is None or written.size == 0:
            _write(path, 0, json.dumps({"schema": SCHEMA, "search": wanted}, allow_nan=False))
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

    UsageError where it cannot be read, is no journal, or has a line that is damaged.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST or not path.is_file():
            raise UsageError(f"{quoted(str(path))} is no journal: not a file below {LARGEST} bytes")
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {quoted(str(path))}: {error.strerror}") from error
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        return Written({}, (), 0)
    first, *rest = whole.decode("utf-8", errors="replace").removesuffix("\n").split("\n")
    search = _header(path, first)
    events = []
    for number, line in enumerate(rest, start=2):
        try:
            events.append(from_line(line))
        except ValueError as error:
            raise UsageError(
                f"damaged: {printable(str(error))}",
                where=f"{printable(str(path))}:{number}",
                hint="a journal is only written by specrepro; begin a new session",
            ) from error
    return Written(search, tuple(events), len(whole))


def _header(path: Path, line: str) -> dict[str, Any]:
    try:
        header = json.loads(line) if len(line) <= LONGEST else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        header = {}
    search = header.get("search")
    if not isinstance(search, dict):
        raise UsageError(
            f"{quoted(str(path))} is no journal of a search", hint=f"its first line says {SCHEMA}"
        )
    return search


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
