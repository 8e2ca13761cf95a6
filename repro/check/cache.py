"""What was read once: files by their sha256, listings and tails of archives by a key."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
import weakref
from pathlib import Path

from .cache_pruning import DEFAULT_LIMIT, GIB, hold, let_go, prune
from .tree import Told

LISTINGS = "listings"
DAY = 86400.0  # seconds
HEX = 64  # characters of the checksum before the content, then a line break


class Cache:
    """A folder of entries, each with its checksum in front; a damaged one counts as missing.

    Entries are written in one step and never changed, so processes may share the folder. A folder
    that cannot be written to is told of once and then left alone. An entry's time is when it was
    used last, to within a day, but that of a listing when it was written.
    """

    def __init__(self, folder: Path, told: Told) -> None:
        self.folder = folder
        self._told = told
        self._writable = True
        self._wrote = False
        self._held = False

    def get(self, kind: str, key: str) -> bytes | None:
        """The content stored under `key`, None if there is none or it is damaged."""
        path = self._path(kind, key)
        self._hold()
        try:
            entry = path.read_bytes()
        except OSError:
            return None
        if kind != LISTINGS:
            _touch(path)
        checksum, content = entry[:HEX], entry[HEX + 1 :]
        return content if hashlib.sha256(content).hexdigest().encode() == checksum else None

    def age(self, kind: str, key: str, now: float) -> float | None:
        """Seconds since the entry was written, None if there is none."""
        try:
            return now - self._path(kind, key).stat().st_mtime
        except OSError:
            return None

    def put(self, kind: str, key: str, content: bytes) -> None:
        """Store `content`; what was there before is replaced."""
        if not self._writable:
            return
        path = self._path(kind, key)
        self._hold()
        self._wrote = True
        checksum = hashlib.sha256(content).hexdigest().encode()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(prefix=".", dir=path.parent)
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(checksum + b"\n" + content)
                Path(name).replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            self._writable = False
            self._told(f"nothing more is cached: {self.folder}: {error.strerror or error}")

    def file(self, sha256: str) -> bytes | None:
        """The file with this hash, None if it is not held."""
        content = self.get("files", sha256)
        if content is None or hashlib.sha256(content).hexdigest() != sha256:
            return None
        return content

    def put_file(self, sha256: str, content: bytes) -> None:
        """Hold a file whose hash has been checked."""
        if self.file(sha256) is None:
            self.put("files", sha256, content)

    def _hold(self) -> None:
        """From the first use on, until nobody has this cache any more."""
        if not self._held and hold(self.folder):
            self._held = True
            weakref.finalize(self, let_go, self.folder)

    def trim(self) -> None:
        """Take away what was used longest ago, if more than the limit is there and something was
        added; while others read there, nothing."""
        if not self._wrote:
            return
        self._wrote = False
        try:
            pruned = prune(self.folder, round(DEFAULT_LIMIT * GIB))
        except OSError as error:
            self._told(f"the cache is above its limit: {self.folder}: {error.strerror or error}")
            return
        if pruned.gone:
            self._told(f"{pruned.gone} entries of the cache were removed, those used longest ago")

    def _path(self, kind: str, key: str) -> Path:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / kind / digest[:2] / digest


def _touch(path: Path) -> None:
    """Say that an entry was used today. One that cannot be written goes sooner than it could."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


def default_folder() -> Path:
    """Where the user's caches are."""
    import platformdirs

    return platformdirs.user_cache_path("specrepro") / "builds"
