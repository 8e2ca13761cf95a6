"""Executes probes over files of a build in a child that can do nothing else.

Code of a build is hostile code here. The child is an isolated interpreter with a scratch folder, an
environment of a few harmless variables and no site packages; it locks itself (probing/isolation.py)
before it looks at the build, and is killed with its group when its time is over.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from ..errors import UntestableError
from ..escape import printable, quoted

ENVIRONMENT = ("LANG", "LC_ALL", "LD_LIBRARY_PATH")
MOST_ANSWERS = 1 << 20  # bytes
MOST_COMPLAINTS = 4 << 10  # bytes of stderr that are kept
PROBE_SECONDS = 20
SECONDS = 120
PACKAGES = ("probing", "probes")
# the child's own copy of this package; nothing else of ours is in its reach
START = """
import sys
from pathlib import Path
folder = Path(sys.argv[1])
sys.path.insert(0, str(folder / "code"))
from check.probing.child import main
main(folder, int(sys.argv[2]))
"""


@dataclass(frozen=True, slots=True)
class Session:
    """What a child left. answers: by probe, as the child said them, not yet looked at.

    holds, fails: the layers of isolation, and those that could not be had and why. ending: "" for
    a child that ended well.
    """

    answers: Mapping[str, Mapping[str, Any]]
    holds: tuple[str, ...]
    fails: tuple[str, ...]
    ending: str
    seconds: float


def execute(
    files: Mapping[str, bytes], probes: Sequence[str], *, seconds: float = SECONDS
) -> Session:
    """Run `probes` over the members `files` (name → bytes). `seconds` is for all of them."""
    with tempfile.TemporaryDirectory(prefix="specrepro-check-") as scratch:
        folder = Path(scratch)
        _furnish(folder, files, probes, seconds)
        started = time.monotonic()
        lines, ending = _run(folder, seconds)
        return _session(lines, ending, time.monotonic() - started)


def _furnish(
    folder: Path, files: Mapping[str, bytes], probes: Sequence[str], seconds: float
) -> None:
    for name, content in files.items():
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or "/" in parts or "\\" in name or "\0" in name:
            raise UntestableError(f"the build has a member {quoted(name)}")
        path = folder.joinpath("files", *parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise UntestableError(f"{quoted(name)} cannot be unpacked: {error.strerror}") from error
    code = folder / "code" / "check"
    code.mkdir(parents=True)
    (code / "__init__.py").touch()
    for package in PACKAGES:
        (code / package).mkdir()
        for file in resources(__package__).joinpath(package).iterdir():
            if file.name.endswith(".py"):
                (code / package / file.name).write_bytes(file.read_bytes())
    job = {
        "probes": list(probes),
        "files": list(files),
        "probe_seconds": min(PROBE_SECONDS, seconds / 2),
        "cpu_seconds": max(1, round(seconds)),
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def _run(folder: Path, seconds: float) -> tuple[bytes, str]:
    """(what came through the pipe, how the child ended)."""
    reading, writing = os.pipe()
    options = ("-I", "-S", "-B", "-X", "utf8")
    try:
        child = subprocess.Popen(
            [sys.executable, *options, "-c", START, str(folder), str(writing)],
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
            said, complaints, cut = _collect(answers, errors, seconds)
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


def _collect(answers: IO[bytes], errors: IO[bytes], seconds: float) -> tuple[bytes, bytes, str]:
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
                    if len(kept[key.fd]) > MOST_ANSWERS:
                        cut = f"said more than {MOST_ANSWERS >> 20} MiB"
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


def _session(lines: bytes, ending: str, seconds: float) -> Session:
    answers: dict[str, Mapping[str, Any]] = {}
    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ("not known: the child did not say",)
    done = False
    for raw in lines.split(b"\n")[:-1]:
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            ending = ending or "said something that is no answer"
            continue
        if not isinstance(line, dict):
            ending = ending or "said something that is no answer"
        elif "holds" in line and not answers and not holds:
            holds = tuple(map(str, line["holds"]))
            fails = tuple(map(str, line.get("fails", ())))
        elif "probe" in line:
            name = str(line["probe"])
            twice = name in answers
            answers[name] = {"unknown": "it was answered twice"} if twice else line
        elif "done" in line:
            done = True
    if not done:
        ending = ending or "ended before its last answer"
    return Session(answers, holds, fails, f"the child {ending}" if ending else "", seconds)
