"""A user's own command under the watchers: its output, its signals and its status pass through.

The command runs in a process group of its own with pipes for its output, which is written on and
kept. Signals that this process gets are given to the group, so that Ctrl-C ends a server as it
would without us. It is not ended by us: it is the user's.
"""

from __future__ import annotations

import contextlib
import os
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
    output that are in the log. cut: whether there was more."""

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
    with log.open("wb") as kept, _forwarded(child):
        keeper = _Keeper(kept)
        threads = [
            threading.Thread(target=keeper.pass_on, args=(source, sink), daemon=True)
            for source, sink in (
                (child.stdout, sys.stdout.buffer),
                (child.stderr, sys.stderr.buffer),
            )
        ]
        for thread in threads:
            thread.start()
        status = child.wait()
        for thread in threads:
            # what it started may hold its pipes open; they are not waited for
            thread.join(2)
        return Ended(128 - status if status < 0 else status, child.pid, keeper.kept, keeper.cut)


class _Keeper:
    """Output of two pipes into one file, each piece whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.kept = 0
        self.cut = False

    def pass_on(self, source: IO[bytes], sink: IO[bytes]) -> None:
        while content := os.read(source.fileno(), CHUNK):
            with contextlib.suppress(BrokenPipeError):  # who read our output has gone
                sink.write(content)
                sink.flush()
            with self._lock:
                if self._file.closed or self.kept + len(content) > LARGEST_LOG:
                    self.cut = True
                    continue
                self._file.write(content)
                self.kept += len(content)


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
