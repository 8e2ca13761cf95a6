"""An archive read by position: where its bytes come from, which to ask for, and a file of them."""

from __future__ import annotations

import bisect
import io
import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Protocol

from ..errors import UntestableError
from ..escape import quoted
from .web import Web

# The end record of an archive and its longest comment.
SHORTEST_TAIL = (1 << 16) + 256
LARGEST_READ = 64 << 20  # bytes
# Between two wanted stretches, reading on costs less than asking again: always, and when
# there would be too many requests otherwise.
NEAR = 64 << 10
FAR = 320 << 10


class Span(Protocol):
    """Bytes by position. Errors: UntestableError."""

    def end(self, length: int) -> tuple[bytes, int]:
        """The last `length` bytes, or all, and the size of the whole."""

    def get(self, start: int, end: int) -> bytes:
        """The bytes `start` … `end`-1, all of them."""

    def close(self) -> None:
        """Let go of what is open."""


class WebSpan:
    """A file on a server, by checked ranges; `size` if the index gives it."""

    def __init__(self, web: Web, url: str, size: int | None) -> None:
        self._web = web
        self._url = url
        self._size = size

    def end(self, length: int) -> tuple[bytes, int]:
        if self._size is None:
            tail, self._size = self._web.tail(self._url, length)
            return tail, self._size
        start = max(0, self._size - length)
        return self._web.part(self._url, start, self._size, self._size), self._size

    def get(self, start: int, end: int) -> bytes:
        if self._size is None:
            self.end(1)
        return self._web.part(self._url, start, end, self._size or 0)

    def close(self) -> None:
        """The session is its owner's."""


class FileSpan:
    """A file on disk, or one that has no name any more."""

    def __init__(self, path: Path | None, file: BinaryIO | None = None) -> None:
        if file is None:
            if path is None or not path.is_file():
                raise UntestableError(f"{quoted(str(path))} is not a file")
            try:
                file = path.open("rb")
            except OSError as error:
                raise UntestableError(f"{quoted(str(path))}: {error.strerror}") from error
        self._file = file

    def end(self, length: int) -> tuple[bytes, int]:
        size = self._file.seek(0, os.SEEK_END)
        return self.get(max(0, size - length), size), size

    def get(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        content = self._file.read(end - start)
        if len(content) != end - start:
            raise UntestableError("the archive ends before its own list of contents says so")
        return content

    def close(self) -> None:
        self._file.close()


class AbsentSpan:
    """What is not to be asked for, because the network is not to be used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def end(self, length: int) -> tuple[bytes, int]:
        raise self._error()

    def get(self, start: int, end: int) -> bytes:
        raise self._error()

    def close(self) -> None:
        """Nothing is open."""

    def _error(self) -> UntestableError:
        return UntestableError(
            f"offline, and what is needed of {quoted(self._name)} was not read before",
            hint="the same command without --offline fills the cache",
        )


def coalesce(
    stretches: Iterable[tuple[int, int]], *, at_most: int, near: int = NEAR, far: int = FAR
) -> list[tuple[int, int]]:
    """Stretches [start, end) joined so that few requests read them and little else.

    Gaps up to `near` bytes are always joined; while there are more than `at_most` stretches, the
    smallest gap is, if it is not above `far`: hundreds of megabytes must not be read to save one
    request.
    """
    joined: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if joined and start - joined[-1][1] <= near:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    while len(joined) > at_most:
        gaps = [after[0] - before[1] for before, after in itertools.pairwise(joined)]
        smallest = min(gaps)
        if smallest > far:
            break
        at = gaps.index(smallest)
        joined[at : at + 2] = [(joined[at][0], joined[at + 1][1])]
    return joined


class Window(io.RawIOBase):
    """A `Span` as a file that can be sought, which keeps what it has read.

    A read of bytes that are not held fetches those that are missing, and `lead` times as many
    before them: the list of a wheel's hashes lies before the archive's list of contents.
    """

    def __init__(
        self, span: Span, *, held: tuple[int, bytes] | None = None, tail: int = SHORTEST_TAIL
    ) -> None:
        super().__init__()
        self._span = span
        self._position = 0
        self.lead = 0.0
        if held is None:
            content, self.size = span.end(tail)
            held = (self.size - len(content), content)
        else:
            self.size = held[0] + len(held[1])
        self._chunks = [held]

    def hold(self, start: int, end: int) -> None:
        """Fetch what is missing of [start, end)."""
        if end - start > LARGEST_READ:
            raise UntestableError(f"the archive wants {end - start} bytes read at once")
        for first, last in self._missing(start, end):
            chunk = (first, self._span.get(first, last))
            bisect.insort(self._chunks, chunk, key=lambda c: c[0])

    def held(self, start: int, end: int) -> bytes:
        """The bytes [start, end), fetched where missing."""
        self.hold(start, end)
        return b"".join(
            content[max(0, start - first) : end - first]
            for first, content in self._chunks
            if first < end and first + len(content) > start
        )

    def _missing(self, start: int, end: int) -> list[tuple[int, int]]:
        gaps = []
        for first, content in self._chunks:
            if first > start:
                gaps.append((start, min(first, end)))
            start = max(start, first + len(content))
            if start >= end:
                break
        if start < end:
            gaps.append((start, end))
        return [(first, last) for first, last in gaps if first < last]

    def read(self, size: int = -1, /) -> bytes:
        left = max(0, self.size - self._position)
        size = left if size < 0 else min(size, left)
        start, end = self._position, self._position + size
        if self.lead and self._missing(start, end):
            self.hold(max(0, start - int(size * self.lead)), end)
        self._position = end
        return self.held(start, end)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        if base + offset < 0:
            # what zipfile reads as: not an archive
            raise OSError("a position before the beginning")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._span.close()
        super().close()
