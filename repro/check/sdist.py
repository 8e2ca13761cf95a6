"""An sdist: a tar that cannot be sought, so it is read whole and its Python files are kept."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from ..errors import UntestableError
from ..escape import quoted
from .archive import LARGEST_FILE, check_names
from .cache import Cache
from .tree import Build, Told
from .wheel_tree import suffixed

LARGEST = 1 << 30  # bytes unpacked; vLLM's has 0.2 GB
MOST_KEPT = 256 << 20  # bytes
# tarfile holds some headers whole, so what is unpacked is bound to what was read for it.
LARGEST_RATIO = 40
ALWAYS_FINE = 64 << 20
STEP = 1 << 16


class SdistTree:
    """The Python files of an sdist, and its metadata. A `Tree`.

    Links are left out: a release's own code is in regular files. Nothing in an sdist is signed by
    a RECORD: it is as good as the hash the index gives of the whole.
    """

    def __init__(self, files: dict[str, bytes], build: Build) -> None:
        self._files = files
        self._build = build

    @property
    def build(self) -> Build:
        return self._build

    def names(self) -> Sequence[str]:
        return sorted(self._files)

    def find(self, suffix: str) -> list[str]:
        return suffixed(self._files, suffix)

    def fetch(self, names: Iterable[str]) -> None:
        """All is held already."""

    def read(self, name: str) -> bytes:
        return self._files[name]

    def notes(self) -> Sequence[str]:
        return [
            "read from the sdist, which may lack what a build adds or later wheels of the release "
            "changed"
        ]

    def close(self) -> None:
        """Nothing is open."""


def unpack(stream: BinaryIO, told: Told) -> dict[str, bytes]:
    """The `.py` files and `PKG-INFO` of a tar.gz, names without its top folder.

    UntestableError for one that is damaged, has names that are no plain paths or the same twice,
    or unpacks to more than a source release does.
    """
    files: dict[str, bytes] = {}
    seen: list[str] = []
    kept = 0
    try:
        with tarfile.open(fileobj=_Unpacked(stream), mode="r|") as archive:
            for info in archive:
                if not info.isreg():
                    continue
                seen.append(info.name)
                name = info.name.partition("/")[2]
                if not (name.endswith(".py") or name == "PKG-INFO"):
                    continue
                kept += info.size
                if info.size > LARGEST_FILE or kept > MOST_KEPT:
                    raise UntestableError(f"the sdist's {quoted(name)} is larger than any source")
                member = archive.extractfile(info)
                content = member.read() if member else b""
                if len(content) != info.size:
                    raise UntestableError(f"the sdist is cut in {quoted(name)}")
                files[name] = content
    except (tarfile.TarError, zlib.error, EOFError, ValueError) as error:
        raise UntestableError(f"the sdist cannot be read: {error}") from error
    check_names(seen)
    if len({name.partition("/")[0] for name in seen}) != 1:
        raise UntestableError("the sdist has not the one top folder that it should have")
    told(f"{len(files)} files of the sdist kept")
    return files


def remember(store: Cache, sha256: str, files: dict[str, bytes]) -> None:
    """Cache the files of the sdist with this hash."""
    listing = {}
    for name, content in files.items():
        listing[name] = hashlib.sha256(content).hexdigest()
        store.put_file(listing[name], content)
    store.put("sdists", sha256, json.dumps(listing).encode())


def recall(store: Cache, sha256: str) -> dict[str, bytes] | None:
    """The files of the sdist with this hash, None if not all are held."""
    held = store.get("sdists", sha256)
    if held is None:
        return None
    files = {}
    for name, digest in json.loads(held).items():
        content = store.file(digest)
        if content is None:
            return None
        files[name] = content
    return files


class _Unpacked(io.RawIOBase):
    """A gzip stream, unpacked piece by piece and within limits."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__()
        self._packed = packed
        self._taken = 0
        self._given = 0
        self._unpacker = zlib.decompressobj(wbits=31)
        self._input = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        pieces: list[bytes] = []
        missing = size if size >= 0 else LARGEST
        while missing > 0:
            if not self._input and not self._unpacker.eof:
                self._input = self._packed.read(STEP)
                self._taken += len(self._input)
                if not self._input:
                    raise EOFError("it ends in the middle")
            if self._unpacker.eof:
                break
            piece = self._unpacker.decompress(self._input, missing)
            self._input = self._unpacker.unconsumed_tail
            pieces.append(piece)
            missing -= len(piece)
            self._given += len(piece)
            if self._given > min(LARGEST, ALWAYS_FINE + LARGEST_RATIO * self._taken):
                raise UntestableError(f"the sdist unpacks to more than {self._given} bytes: a bomb")
        return b"".join(pieces)


def version_of(files: dict[str, bytes]) -> str | None:
    """The version an sdist says it has."""
    text = files.get("PKG-INFO", b"").decode("utf-8", errors="replace")
    match = re.search(r"^Version:\s*(\S+)", text.partition("\n\n")[0], re.MULTILINE)
    return match[1] if match else None
