"""Bytes of a log, whatever it is packed in, in pieces: constant memory, any size.

Packing is told by the first bytes, not by the name. UTF-16 with a byte order mark becomes UTF-8.
What ends early (a cut gzip, a bad block) is read up to there, and said.
"""

from __future__ import annotations

import codecs
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from ...errors import UsageError
from ...escape import quoted

PIECE = 2 * 1024 * 1024

_UNPACKERS = ("zlib", "lzma", "_lzma", "zstandard", "compression", "_zstd")
_GZIP, _ZSTD, _BZIP, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\x00"
ZSTD_HINT = "pip install 'specrepro[logs]', or unpack it: zstd -dc LOG | specrepro diagnose -"


class Stream:
    """Pieces of one log. After the last, `cut` says why reading ended early; None: at its end."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.cut: str | None = None
        self.hint: str | None = None
        self.bytes = 0
        self._raw = raw

    def pieces(self) -> Iterator[bytes]:
        """The text, unpacked, in pieces of about PIECE bytes. Never raises on what it holds."""
        try:
            # a pipe may give less than is asked for
            head = _exactly(self._raw, 8)
            unpacked = self._unpacked(head)
            if unpacked is None:
                return
            yield from self._counted(_as_utf_8(_pieces(unpacked)))
        except EOFError:
            self.cut = "the packed file ends too early"
        except OSError as error:
            self.cut = f"it cannot be read further: {error}"
        except Exception as error:
            # unpackers have classes of their own, known once they are loaded
            if type(error).__module__.partition(".")[0] not in _UNPACKERS:
                raise
            self.cut = f"it cannot be unpacked further: {error}"

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.bytes += len(piece)
            yield piece

    def _unpacked(self, head: bytes) -> IO[bytes] | None:
        raw = cast("IO[bytes]", _Joined(head, self._raw))
        if head.startswith(_GZIP):
            import gzip

            return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
        if head.startswith(_BZIP):
            import bz2

            return cast("IO[bytes]", bz2.BZ2File(raw))
        if head.startswith(_XZ):
            import lzma

            return cast("IO[bytes]", lzma.LZMAFile(raw))
        if head.startswith(_ZSTD):
            opened = _zstd(raw)
            if opened is None:
                self.cut, self.hint = (
                    "it is packed with zstd, and nothing here unpacks it",
                    ZSTD_HINT,
                )
            return opened
        return raw


def open_log(path: Path) -> IO[bytes]:
    """A log opened for reading; "-" is the standard input.

    Raises UsageError for what is no file or pipe, or cannot be opened.
    """
    if str(path) == "-":
        return sys.stdin.buffer
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise UsageError(
                f"{quoted(str(path))} is neither a file nor a pipe", hint="name log files, or - "
            )
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"{quoted(str(path))} cannot be read: {reason}", hint="check the path and its rights"
        ) from error


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


def _as_utf_8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    first = next(pieces, b"")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        for piece in _chained(first, pieces):
            yield decoder.decode(piece).encode("utf-8", "replace")
        return
    yield first.removeprefix(codecs.BOM_UTF8)
    yield from pieces


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _exactly(stream: IO[bytes], size: int) -> bytes:
    read = b""
    while len(read) < size and (piece := stream.read(size - len(read))):
        read += piece
    return read


def _zstd(raw: IO[bytes]) -> IO[bytes] | None:
    if sys.version_info >= (3, 14):
        with suppress(ImportError):  # a Python built without it
            from compression import zstd

            return cast("IO[bytes]", zstd.ZstdFile(raw))
    try:
        import zstandard
    except ImportError:
        return None
    return cast(
        "IO[bytes]", zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    )


class _Joined:
    """The bytes that were looked at, then the rest of the stream. Reads only."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        taken = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(taken) :]
        if size < 0 or size > len(taken):
            taken += self._rest.read(size - len(taken) if size >= 0 else -1) or b""
        return taken

    def seekable(self) -> bool:
        return False

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._rest.close()
