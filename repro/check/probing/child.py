"""The child: reads what is asked for, locks itself, runs the probes, says one JSON line each.

Its folder holds this package as `code/check/…`, the files of the build as `files/…`, and
`job.json`. Answers go to the file descriptor it is told.
"""

from __future__ import annotations

import json
import os
import signal
import sysconfig
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from ..probes import load
from .isolation import lock
from .kernel_lift import lift_kernel
from .probe import Lift, NotFoundError, Probe, Sources, matches

# Before the lock: these load shared libraries from folders that it closes.
PRELOADED = ("importlib.metadata", "zlib", "math", "functools", "inspect")
DETAIL = 400  # characters of what is said about an answer


class OutOfTimeError(BaseException):
    """A probe took longer than it may. Not an Exception, so that lifted code does not catch it."""


def main(folder: Path, out: int) -> None:
    """Answer every probe of the job in `folder`; the answers go to the descriptor `out`."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    for module in PRELOADED:
        import_module(module)
    probes = [load(name) for name in job["probes"]]
    library = {Path(sysconfig.get_path(n)) for n in ("stdlib", "platstdlib")}
    holds, fails = lock([folder, *library], job["cpu_seconds"])
    _say(out, {"holds": holds, "fails": fails})
    files = {name: folder / "files" / name for name in job["files"]}
    every = Sources(files)
    signal.signal(signal.SIGALRM, _out_of_time)
    # before the probes, which execute code of the build in this process
    for lift in job["lifts"]:
        signal.setitimer(signal.ITIMER_REAL, job["probe_seconds"])
        try:
            said = _lifted(Lift(**lift), files, every)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        _say(out, {"lift": lift["id"], **said})
    for probe in probes:
        globs = probe.patterns(files)
        wanted = {n: p for n, p in files.items() if any(matches(n, f) for f in globs)}
        signal.setitimer(signal.ITIMER_REAL, job["probe_seconds"])
        try:
            said = _answer(probe, Sources(wanted, every.trees, every.tables))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        _say(out, {"probe": probe.id, **said})
    _say(out, {"done": len(probes)})


def _lifted(lift: Lift, files: Mapping[str, Path], every: Sources) -> Mapping[str, Any]:
    globs = (*lift.files, *lift.helpers)
    wanted = {n: p for n, p in files.items() if any(matches(n, f) for f in globs)}
    try:
        return lift_kernel(Sources(wanted, every.trees, every.tables), lift)
    except NotFoundError as error:
        return {"unknown": str(error)[:DETAIL]}
    except OutOfTimeError:
        return {"unknown": "lifting it took too long"}
    except (RecursionError, MemoryError, ValueError) as error:
        return {"unknown": f"it cannot be lifted: {type(error).__name__}: {error}"[:DETAIL]}


def _answer(probe: Probe, sources: Sources) -> Mapping[str, Any]:
    try:
        answer = probe.answer(sources)
    except NotFoundError as error:
        return {"unknown": str(error)[:DETAIL]}
    except OutOfTimeError:
        return {"unknown": "it took too long"}
    except Exception as error:
        # code of the build fails in its own ways: the probe does not know what it looked at
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return {"unknown": f"{type(error).__name__} at {where}: {error}"[:DETAIL]}
    return {
        "value": answer.value,
        "path": answer.path,
        "line": answer.line,
        "ran": answer.ran,
        "detail": answer.detail[:DETAIL],
    }


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTimeError


def _say(out: int, line: Mapping[str, Any]) -> None:
    data = json.dumps(line, default=str).encode() + b"\n"
    while data:
        data = data[os.write(out, data) :]
