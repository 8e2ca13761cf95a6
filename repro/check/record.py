"""RECORD: the hashes that a wheel carries of its files.

Source of the rules: the packaging specifications "Recording installed projects" and "Binary
distribution format".
"""

from __future__ import annotations

import base64
import csv
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import UntestableError
from ..escape import quoted
from .cache import Cache

ALGORITHMS = {"sha256", "sha384", "sha512"}
# Files that cannot hold their own hash.
UNHASHED = ("RECORD", "RECORD.jws", "RECORD.p7s")


@dataclass(frozen=True, slots=True)
class Entry:
    """Hash of one file: its name in hashlib, the digest in hex; `size` in bytes if given."""

    algorithm: str
    digest: str
    size: int | None

    def matches(self, content: bytes) -> bool:
        right_size = self.size is None or self.size == len(content)
        return right_size and hashlib.new(self.algorithm, content).hexdigest() == self.digest

    def held(self, store: Cache) -> bytes | None:
        """The file with this hash from the store, None if it is not there."""
        content = store.file(self.digest) if self.algorithm == "sha256" else None
        return content if content is not None and self.matches(content) else None

    def keep(self, store: Cache, content: bytes) -> None:
        """Put a file that matches into the store."""
        if self.algorithm == "sha256":
            store.put_file(self.digest, content)


def parse(content: bytes) -> dict[str, Entry]:
    """The hashed files of a RECORD. UntestableError for one that is not valid."""
    try:
        text = content.decode("utf-8")
        rows = [row for row in csv.reader(text.splitlines(), strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UntestableError(f"RECORD cannot be read: {error}") from error
    entries: dict[str, Entry] = {}
    for number, row in enumerate(rows, start=1):
        name, hashed, size = row if len(row) == 3 else ("", "", "")
        if not name or name in entries:
            raise UntestableError(f"RECORD has no single file in line {number}")
        if hashed:
            entries[name] = _entry(name, hashed, size)
    return entries


def _entry(name: str, hashed: str, size: str) -> Entry:
    algorithm, _, digest = hashed.partition("=")
    padded = digest + "=" * (-len(digest) % 4)
    try:
        raw = base64.urlsafe_b64decode(padded.encode("ascii"))
        length = int(size) if size else None
    except ValueError as error:
        raise UntestableError(f"RECORD has no hash of {quoted(name)}: {error}") from error
    if algorithm not in ALGORITHMS or len(raw) != hashlib.new(algorithm).digest_size:
        raise UntestableError(f"RECORD has no hash of {quoted(name)} that can be checked")
    return Entry(algorithm, raw.hex(), length)


def record_name(names: Iterable[str], project: str) -> str:
    """The one RECORD of a wheel of `project`. UntestableError if there is none, or several."""
    from packaging.utils import canonicalize_name

    wanted = canonicalize_name(project)
    found = [
        name
        for name in names
        if name.endswith(".dist-info/RECORD")
        and name.count("/") == 1
        and canonicalize_name(name.partition("-")[0]) == wanted
    ]
    if len(found) != 1:
        raise UntestableError(
            f"not a wheel of {project}: it has {len(found)} lists of hashes (RECORD)"
        )
    return found[0]
