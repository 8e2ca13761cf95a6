"""The file of a case: read with bounds, and how a message points into it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from ..errors import CaseError
from ..escape import printable

MAX_BYTES = 1 << 20

# Where a value stands in the data: keys of mappings, indices of lists.
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """1-based line and column (in characters) of a key or value."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a case: at which place, what is wrong and allowed, the nearest name."""

    place: Place
    message: str
    hint: str | None = None


def dotted(place: Place) -> str:
    """A place as messages write it: `expect[0].finding.kind`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{printable(part[:80])}"
    return text.removeprefix(".")


def failure(path: Path, problem: Problem, position: Position, more: int = 0) -> CaseError:
    """The error a person sees for `problem`, saying how many more there are."""
    message = problem.message
    if more:
        message += f" (and {more} more problem{'s' if more > 1 else ''})"
    return CaseError(
        message,
        where=f"{printable(str(path))}:{position.line}:{position.column}",
        key=dotted(problem.place) or None,
        hint=problem.hint,
    )


def read_bytes(path: Path, what: str = "case") -> bytes:
    """The bytes of a regular file of at most MAX_BYTES; CaseError if it is anything else."""
    where = printable(str(path))
    try:
        # Looked at before it is opened: opening a device or a pipe can have effects of its own.
        _refuse_special(os.stat(path), where, what)
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            _refuse_special(os.fstat(file.fileno()), where, what)
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise CaseError("no such file", where=where) from None
    except OSError as error:
        raise CaseError(f"cannot be read: {error.strerror or error}", where=where) from error
    except ValueError:
        raise CaseError("is not the name of a file", where=where) from None
    if len(content) > MAX_BYTES:
        raise CaseError(_too_large(len(content), what), where=where)
    return content


def _refuse_special(status: os.stat_result, where: str, what: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise CaseError(f"is not a regular file; {what} files are YAML text", where=where)
    if status.st_size > MAX_BYTES:
        raise CaseError(_too_large(status.st_size, what), where=where)


def _too_large(size: int, what: str) -> str:
    return f"is too large for a {what} file: {size:,} bytes or more, at most {MAX_BYTES:,} allowed"


def decode(path: Path, content: bytes, what: str = "case") -> str:
    """`content` as text; CaseError at the first byte that is not UTF-8."""
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8").removeprefix("\ufeff")
        message = f"byte 0x{content[error.start]:02x} is not UTF-8; {what} files are UTF-8 text"
        raise failure(path, Problem((), message), position_after(before)) from None


def position_after(text: str) -> Position:
    """Where the next character after `text` stands."""
    lines = text.split("\n")
    return Position(len(lines), len(lines[-1]) + 1)
