"""A tool of others, run and waited for: its own process group, a time limit, bounded output."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import NoEnvironmentError
from ...escape import printable, quoted

MOST_KEPT = 1 << 20  # bytes of each stream; of more the end is kept, which says how it went
TICK = 0.25  # seconds between looks at a child that holds its streams open
LINGER = 1.0  # seconds a stream may stay open after the child itself has ended
# what a tool needs of the caller's environment; no variable that names an environment is here
INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "PATH",
    "TMPDIR",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a tool ended. `status` is negative for a signal, None where its time was over.

    `output` is stdout, `complaints` stderr: as they came, not yet safe to show.
    """

    status: int | None
    output: str
    complaints: str
    seconds: float


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of `environ` that a tool gets."""
    return {name: environ[name] for name in INHERITED if name in environ}


def run_tool(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    keep_open: Sequence[int] = (),
) -> Ended:
    """Run `command` to its end, or for `seconds`; then its whole process group is ended.

    An interrupt ends it too. `keep_open` are descriptors it holds as long as it lives, so that a
    lock outlives us where it does. NoEnvironmentError (infra) if it cannot be started.
    """
    started = time.monotonic()
    try:
        child = subprocess.Popen(
            [os.fspath(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            pass_fds=tuple(keep_open),
            start_new_session=True,
        )
    except OSError as error:
        name = quoted(os.fspath(command[0]))
        raise NoEnvironmentError(
            f"{name} cannot be started: {printable(error.strerror or str(error))}", infra=True
        ) from error
    try:
        streams, in_time = _collect(child, started + seconds)
    finally:
        _end_group(child)
        for stream in (child.stdout, child.stderr):
            if stream:
                stream.close()
        child.wait()
    output, complaints = (bytes(kept).decode("utf-8", "replace") for kept in streams)
    took = time.monotonic() - started
    return Ended(child.returncode if in_time else None, output, complaints, took)


def _collect(
    child: subprocess.Popen[bytes], deadline: float
) -> tuple[tuple[bytearray, bytearray], bool]:
    """What it said, and whether it ended by itself before `deadline`."""
    said = (bytearray(), bytearray())
    ended_at: float | None = None
    with selectors.DefaultSelector() as selector:
        for stream, kept in zip((child.stdout, child.stderr), said, strict=True):
            if stream:
                selector.register(stream, selectors.EVENT_READ, kept)
        while selector.get_map():
            now = time.monotonic()
            if ended_at is None and child.poll() is not None:
                ended_at = now
            if ended_at is not None and now - ended_at > LINGER:
                return said, True  # something it left behind holds the streams
            if ended_at is None and now >= deadline:
                return said, False
            for key, _ in selector.select(min(TICK, max(0.0, deadline - now))):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                key.data.extend(data)
                del key.data[:-MOST_KEPT]
    try:
        child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return said, False
    return said, True


def _end_group(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # all of it has ended
    except PermissionError:  # a zombie that was not waited for yet, on some systems
        child.kill()
