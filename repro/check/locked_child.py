"""A child process for code of a build: started bare, listened to within bounds, ended whole.

It is an isolated interpreter with an environment of a few harmless variables and no site packages;
it locks itself (probing/isolation.py) before it looks at the build.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from importlib.resources import files as resources
from pathlib import Path
from typing import IO, cast

from ..escape import printable

ENVIRONMENT = ("LANG", "LC_ALL", "LD_LIBRARY_PATH")
MOST_ANSWERS = 1 << 20  # bytes
MOST_COMPLAINTS = 4 << 10  # bytes of stderr that are kept


def furnish_code(folder: Path, packages: tuple[str, ...]) -> None:
    """Put the child's own copy of some packages of this one under `folder`/code/check."""
    code = folder / "code" / "check"
    code.mkdir(parents=True)
    (code / "__init__.py").touch()
    for package in packages:
        (code / package).mkdir()
        for file in resources(__package__).joinpath(package).iterdir():
            if file.name.endswith(".py"):
                (code / package / file.name).write_bytes(file.read_bytes())


def run_locked(
    folder: Path, start: str, seconds: float, most: int = MOST_ANSWERS
) -> tuple[bytes, str]:
    """(what came through the pipe, how the child ended: "" for well).

    start: Python that the child begins with. Its arguments are the folder and the number of the
    descriptor for answers; it has to lock itself before it looks at what is not ours. most: bytes
    that it may answer.
    """
    reading, writing = os.pipe()
    options = ("-I", "-S", "-B", "-X", "utf8")
    try:
        child = subprocess.Popen(
            [sys.executable, *options, "-c", start, str(folder), str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={k: v for k in ENVIRONMENT if (v := os.environ.get(k)) is not None},
            pass_fds=(writing,),
            start_new_session=True,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    errors = cast(IO[bytes], child.stderr)  # a pipe was asked for
    try:
        with os.fdopen(reading, "rb", buffering=0) as answers, errors:
            said, complaints, cut = _collect(answers, errors, seconds, most)
            if cut:
                _kill(child)
            try:
                status = child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                _kill(child)
                status, cut = child.wait(), cut or "did not end after its last answer"
    finally:
        _kill(child)
    return said, cut or _ended(status, complaints)


def _collect(
    answers: IO[bytes], errors: IO[bytes], seconds: float, most: int
) -> tuple[bytes, bytes, str]:
    """(answers, the beginning of stderr, why it was cut off) until both ends are closed."""
    kept: dict[int, bytearray] = {answers.fileno(): bytearray(), errors.fileno(): bytearray()}
    deadline = time.monotonic() + seconds
    cut = ""
    with selectors.DefaultSelector() as selector:
        for stream in (answers, errors):
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map() and not cut:
            left = deadline - time.monotonic()
            if left <= 0:
                cut = f"was ended after {seconds:g} s"
                break
            for key, _ in selector.select(left):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fd == answers.fileno():
                    kept[key.fd] += data
                    if len(kept[key.fd]) > most:
                        cut = f"said more than {most >> 20} MiB"
                elif len(kept[key.fd]) < MOST_COMPLAINTS:
                    kept[key.fd] += data[: MOST_COMPLAINTS - len(kept[key.fd])]
    return bytes(kept[answers.fileno()]), bytes(kept[errors.fileno()]), cut


def _kill(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # the whole group has gone, or is gone but for a zombie


def _ended(status: int, complaints: bytes) -> str:
    if status == 0:
        return ""
    last = complaints.decode("utf-8", "replace").strip().rpartition("\n")[2]
    how = f"exit status {status}"
    if status < 0:
        try:
            how = signal.Signals(-status).name
        except ValueError:
            how = f"signal {-status}"
    return f"ended by {how}" + (f": {printable(last)[:200]}" if last else "")
