"""Keeping the cache of builds within a limit: what was used longest ago goes.

A process that has a cache open holds a lock of its folder, shared with all others. Entries are
taken away only under the same lock, held alone: nothing goes that a running check may want to read
again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30
DEFAULT_LIMIT = 2.0  # GiB
LOCK = ".lock"
# what a cache holds: folders of entries, each `<two hex digits>/<sha256 of its key>`
KINDS = ("files", "tails", "lengths", "listings", "kernels", "sdists")
SHELF, ENTRY = re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{64}|\.[a-z0-9_]{8}")
# one descriptor a folder, and by how many caches of this process it is held: locks of two
# descriptors would keep each other out
_held: dict[Path, tuple[int, int]] = {}
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class Shelved:
    """One kind of entries: how many, and their bytes."""

    kind: str
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """`gone`: how many entries were removed. in_use: another process reads, and all was left as it
    is. `before`, `after`: bytes of all entries."""

    gone: int
    in_use: bool
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    used: float
    bytes: int


def hold(folder: Path) -> bool:
    """Hold the lock of a cache with all others who read there, until `let_go`. False for a folder
    that cannot be written to: it has no lock, and nobody who could take entries away."""
    with _guard:
        if folder in _held:
            descriptor, count = _held[folder]
            _held[folder] = descriptor, count + 1
            return True
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        # whoever takes entries away is done soon
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        _held[folder] = descriptor, 1
        return True


def let_go(folder: Path) -> None:
    """End one `hold` that was true."""
    with _guard:
        descriptor, count = _held.pop(folder)
        if count > 1:
            _held[folder] = descriptor, count - 1
        else:
            os.close(descriptor)


def shelved(folder: Path) -> list[Shelved]:
    """What a cache holds, by kind; kinds without entries are left out."""
    found = []
    for kind in KINDS:
        entries = list(_entries(folder / kind))
        if entries:
            found.append(Shelved(kind, len(entries), sum(entry.bytes for entry in entries)))
    return found


def prune(folder: Path, limit: int) -> Pruned:
    """Remove entries, the one used longest ago first, until all have at most `limit` bytes; and
    nothing at all while another process holds the lock. OSError where an entry cannot be removed.
    """
    entries = [entry for kind in KINDS for entry in _entries(folder / kind)]
    before = after = sum(entry.bytes for entry in entries)
    if before <= limit:
        return Pruned(0, False, before, before)
    if not hold(folder):
        raise PermissionError(errno.EACCES, "it cannot be locked", str(folder))
    descriptor, _ = _held[folder]
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        gone = 0
        for entry in sorted(entries, key=lambda entry: entry.used):
            if after <= limit:
                break
            entry.path.unlink(missing_ok=True)
            after -= entry.bytes
            gone += 1
        return Pruned(gone, False, before, after)
    except BlockingIOError:
        return Pruned(0, True, before, before)
    finally:
        # asking for it alone may have lost the shared one
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        let_go(folder)


def _entries(folder: Path) -> Iterator[_Entry]:
    """The entries of a kind, by their names; nothing else that lies there is one, and no link is
    followed. What a process that was killed left half-written counts too."""
    if folder.is_symlink():
        return
    for shelf in _scan(folder):
        if not (SHELF.fullmatch(shelf.name) and shelf.is_dir(follow_symlinks=False)):
            continue
        for entry in _scan(Path(shelf.path)):
            with contextlib.suppress(FileNotFoundError):
                facts = entry.stat(follow_symlinks=False)
                if ENTRY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    yield _Entry(Path(entry.path), facts.st_mtime, facts.st_size)


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
