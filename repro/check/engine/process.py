"""An engine's process: start the driver in its environment, watch it, end all that it started."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path
from typing import IO, cast

from ...errors import UntestableError
from ...escape import quoted

SECONDS = 300.0
MOST_LOG = 64 << 20  # bytes
LOOK = 0.1  # seconds between two looks
QUIET = 40.0  # seconds without a word that an engine has after an error
TAIL = 8 << 10  # bytes of the log in which an error is the last that happened
END = 15.0  # seconds that the end of a tree may take
# What an engine needs of the caller's environment. Secrets are not for it, nor is its home.
INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME")
OBSERVATIONS, LOG, JOB = "observations.ndjson", "engine.log", "job.json"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a driver ended. `reason`: "" for one that ended by itself with status 0.

    left: processes of its tree that were still there then, and were ended; None where the system
    keeps no count of them.
    """

    reason: str
    timed_out: bool
    left: int | None
    seconds: float


# an isolated interpreter finds the driver's copy by this alone, and so do workers that it spawns
START = """
import sys
sys.path.insert(0, sys.argv[1])
from driver.drive import end
end(sys.argv[2])
"""


def furnish(folder: Path) -> None:
    """Copy the driver, a package of its own, into `folder`."""
    code = folder / "code" / "driver"
    code.mkdir(parents=True)
    for file in resources(__package__).joinpath("driver").iterdir():
        if file.name.endswith(".py"):
            (code / file.name).write_bytes(file.read_bytes())


def environment(scratch: Path, caches: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of an engine: deterministic, silent, and with caches of its own."""
    own = {
        "HOME": scratch,
        "TMPDIR": scratch / "tmp",
        "XDG_CACHE_HOME": caches,
        "XDG_CONFIG_HOME": scratch / "config",
        "HF_HOME": scratch / "hf",
        "VLLM_CACHE_ROOT": caches / "vllm",
        "VLLM_CONFIG_ROOT": scratch / "config" / "vllm",
        "TORCHINDUCTOR_CACHE_DIR": caches / "inductor",
        "TRITON_CACHE_DIR": caches / "triton",
    }
    fixed = {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        # one thread: two of them round otherwise, and spin where the machine is shared
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        # one process, so that each step of the engine can be made and looked at
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | {name: str(path) for name, path in own.items()} | fixed | dict(variables)


def drive(
    python: Path,
    folder: Path,
    variables: Mapping[str, str],
    *,
    caches: Path,
    seconds: float = SECONDS,
    watched: Callable[[float], None] = lambda elapsed: None,
) -> Ending:
    """Run the driver on `folder`/job.json by the interpreter `python`, and wait.

    Its observations and its log lie in `folder` afterwards, and nothing that it started runs any
    more. caches: a folder that starts of one build share; an engine that has to look at its model
    classes anew needs twice the time to start. watched: is told the seconds, once each.
    UntestableError where the interpreter cannot be started.
    """
    furnish(folder)
    if shutil.which(python) is None:
        raise UntestableError(f"{quoted(str(python))} is no program that can be started")
    reaper = [sys.executable, "-I", "-S", str(resources(__package__) / "reaper.py")]
    command = [str(python), "-I", "-u", "-c", START, str(folder / "code"), str(folder / JOB)]
    # stages of an engine talk through sockets there, whose paths may have 107 bytes
    with tempfile.TemporaryDirectory(prefix="sr-", ignore_cleanup_errors=True) as scratch:
        (Path(scratch) / "tmp").mkdir()
        variables = environment(Path(scratch), caches, variables)
        command = [*reaper, scratch, *command]
        return _watched(command, folder / LOG, Path(scratch), variables, seconds, watched)


def _watched(
    command: Sequence[str],
    log_file: Path,
    scratch: Path,
    variables: Mapping[str, str],
    seconds: float,
    watched: Callable[[float], None],
) -> Ending:
    started = time.monotonic()
    with log_file.open("wb") as log:
        reaper = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=scratch,
            env=dict(variables),
            start_new_session=True,
        )
        reason = ""
        told = 0  # seconds
        grown = (0, 0.0)  # the log's size, and when it last changed
        try:
            while not reason and reaper.poll() is None:
                elapsed = time.monotonic() - started
                if elapsed >= told:
                    watched(elapsed)
                    told += 1
                size = os.fstat(log.fileno()).st_size
                if size != grown[0]:
                    grown = (size, elapsed)
                if elapsed > seconds:
                    reason = f"no end within {seconds:g} s"
                elif elapsed - grown[1] > QUIET and _complains(log_file):
                    reason = f"nothing more for {QUIET:g} s after an error"
                elif max(size, _size(log_file.with_name(OBSERVATIONS))) > MOST_LOG:
                    reason = f"what it writes grew beyond {MOST_LOG >> 20} MiB"
                else:
                    time.sleep(LOOK)
        finally:
            said = _end(reaper)
    return _ending(said, reason, time.monotonic() - started)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _complains(log: Path) -> bool:
    """Whether the end of a log has an error. An engine whose worker failed may wait for ever."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL))
        return b"ERROR " in file.read()


def _end(reaper: subprocess.Popen[bytes]) -> bytes:
    """Let the reaper end the tree; what it said."""
    cast(IO[bytes], reaper.stdin).close()
    out = cast(IO[bytes], reaper.stdout)
    try:
        reaper.wait(END)
    except subprocess.TimeoutExpired:
        os.killpg(reaper.pid, signal.SIGKILL)
        reaper.wait()
    with out:
        return out.read(1 << 16)


def _ending(said: bytes, reason: str, seconds: float) -> Ending:
    timed_out = bool(reason)
    try:
        told = json.loads(said)
        status, left = told["status"], int(told["left"])
        contained = bool(told["contained"])
    except (ValueError, TypeError, KeyError):
        return Ending(reason or "what became of it is not known", timed_out, None, seconds)
    if not reason and status != 0:
        reason = _how(status)
    return Ending(reason, timed_out, left if contained else None, seconds)


def _how(status: object) -> str:
    if not isinstance(status, int):
        return "what became of it is not known"
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
