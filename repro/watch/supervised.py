"""A user's own command under the watchers: its output, its signals and its status pass through.

The command runs in a process group of its own with pipes for its output, which is written on and
kept. Signals that this process gets are given to the group, so that Ctrl-C ends a server as it
would without us. It is not ended by us: it is the user's.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..errors import UsageError
from ..escape import quoted

FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
CHUNK = 1 << 16
LARGEST_LOG = 4 << 30  # bytes that are kept of the output; all of it passes through


@dataclass(frozen=True, slots=True)
class Ended:
    """status: of the command, 128 + n where signal n ended it. pid: of the command. kept: bytes of
    output that are in the log. cut: whether there was more, or may be: what the command left behind
    still holds its pipes."""

    status: int
    pid: int
    kept: int
    cut: bool


def run(words: Sequence[str], log: Path) -> Ended:
    """Run a command to its end. UsageError if it cannot be started."""
    try:
        child = subprocess.Popen(
            list(words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise UsageError(f"cannot start {quoted(words[0])}: {error.strerror}") from error
    with log.open("wb", buffering=0) as kept, _forwarded(child):
        keeper = _Keeper(kept)
        threads = [
            threading.Thread(target=keeper.pass_on, args=(source, sink), daemon=True)
            for source, sink in (
                (child.stdout, _descriptor(sys.stdout)),
                (child.stderr, _descriptor(sys.stderr)),
            )
        ]
        for thread in threads:
            thread.start()
        status = child.wait()
        for thread in threads:
            # what it started may hold its pipes open; they are not waited for
            thread.join(2)
        keeper.end(any(thread.is_alive() for thread in threads))
        return Ended(128 - status if status < 0 else status, child.pid, keeper.kept, keeper.cut)


class _Keeper:
    """Output of two pipes into one file, each piece whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.kept = 0
        self.cut = False

    def pass_on(self, source: IO[bytes], sink: int | None) -> None:
        """Until the pipe ends. What cannot be passed on or kept is still read: or the command,
        whose pipe would be full, would wait for ever."""
        while content := os.read(source.fileno(), CHUNK):
            if sink is not None and not _written(sink, content):
                sink = None
            with self._lock:
                # after a gap nothing is kept: the log is the beginning of the output, whole
                if self.cut or self.kept + len(content) > LARGEST_LOG:
                    self.cut = True
                    continue
                try:
                    written = self._file.write(content)
                except OSError:  # the disk is full
                    written = 0
                self.kept += written
                self.cut = written < len(content)

    def end(self, more: bool) -> None:
        """Nothing is kept from here on. more: whether output may still come."""
        with self._lock:
            self.cut = self.cut or more


def _descriptor(stream: IO[str] | None) -> int | None:
    """Where a stream goes, None where it was closed before we began. Pieces are written to the
    descriptor itself: a thread that is left may not hold the lock of a stream that Python ends."""
    if stream is None:
        return None
    stream.flush()
    return stream.fileno()


def _written(sink: int, content: bytes) -> bool:
    """Write all of it; whether that went. False where the reader has gone, or the disk is full."""
    rest = memoryview(content)
    while rest:
        try:
            rest = rest[os.write(sink, rest) :]
        except BlockingIOError:  # somebody made it non-blocking; it takes more when it can
            select.select([], [sink], [])
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _forwarded(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Gives signals of this process to the child's group."""

    def forward(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)

    numbers = [getattr(signal, name) for name in FORWARDED if hasattr(signal, name)]
    before = {number: signal.signal(number, forward) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
