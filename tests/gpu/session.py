"""All that is done once a GPU is at hand, within one limit of time; run.sh starts it.

python tests/gpu/session.py --out DIR --seconds N [--wheels DIR] [--only PART]... [--case ID]...
                            [--rounds N]

Writes DIR/session.json and one small JSON file a part. A part ends at its own limit or at that of
all; what did not fit, or was interrupted, is said there, and nothing is taken for granted of it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from compact import without_paths
from offline import OfflineError, installed
from parts import LEAST, PARTS, TIME, Came, Session, gone

SCHEMA = "specrepro/gpu-session@2"
# Of each part, seconds at most of ALL, and more where all have more. Cases have what is left, and
# leave to the benchmark behind them what it takes, or half.
ALL = 460.0
LIMITS = {"doctor": 60.0, "selftest": 125.0, "tests": 100.0, "benchmark": 60.0}
NEEDED = ("specrepro", "cuda.bindings", "pytest", "hypothesis")
PACKAGES = ("numpy", "triton", "cuda-bindings", "nvidia-ml-py", "nvidia-cuda-sanitizer-api")
NO_GPU = 125
NOT_BEGUN = "not begun"
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptedBy(BaseException):
    """A signal asks to end; what was gathered stays."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@dataclass(frozen=True, slots=True)
class Part:
    """What became of a part. state: done, cut (its time was over), failed or left out. ok: all of
    it came out as it must; None where that is not known. said: why, for a reader."""

    name: str
    state: str
    ok: bool | None
    seconds: float
    limit: float
    said: str = ""


def played(session: Session, name: str, limit: float) -> Part:
    """One part, whatever becomes of it."""
    left = session.left(limit)
    if left < LEAST:
        return Part(name, "left out", None, 0.0, limit, TIME)
    began = time.monotonic()
    try:
        came = PARTS[name](session, limit)
    except Exception as error:  # what a part cannot read must not end the others
        came = Came(None, f"{type(error).__name__}: {error}")
    seconds = round(time.monotonic() - began, 1)
    cut = came.cut or seconds >= left - 0.5
    state = "cut" if cut else "failed" if came.ok is None else "done"
    return Part(name, state, came.ok, seconds, limit, without_paths(came.said))


def limit_of(name: str, wanted: Sequence[str], left: float, of: float) -> float:
    """Seconds that a part may take, of the `left` ones, where all together have `of`."""
    more = max(1.0, of / ALL)
    if len(wanted) == 1:
        return round(left, 1)
    if name == "cases":
        kept = min(more * LIMITS["benchmark"], left / 2) if "benchmark" in wanted else 0.0
        return round(left - kept, 1)
    return round(min(more * LIMITS[name], left), 1)


def machine(out: Path) -> dict[str, Any]:
    """What the results are of; the device is as doctor says."""
    packages = {}
    for name in ("specrepro", *PACKAGES):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
    told: dict[str, Any] = {"checks": []}
    if (out / "doctor.json").is_file():
        told = json.loads((out / "doctor.json").read_text(encoding="utf-8"))
    said = {check["name"]: check["said"] for check in told["checks"]}
    return {
        "device": str(said.get("GPU 0", "unknown")).split(",")[0],
        "driver": said.get("driver"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "packages": packages,
    }


def play(session: Session, wanted: Sequence[str], seconds: float) -> int:
    """The parts in their order; session.json says after each how far it came."""
    record = {
        "schema": SCHEMA,
        "started": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "limit": seconds,
        "ended": "",
    }
    parts: dict[str, Part] = {}

    def write(ended: str) -> None:
        all_ = [parts.get(n, Part(n, "left out", None, 0.0, 0.0, NOT_BEGUN)) for n in wanted]
        more = {"machine": machine(session.out), "parts": [asdict(part) for part in all_]}
        session.write("session", record | {"ended": ended} | more)

    name, limit = wanted[0], 0.0
    began = time.monotonic()
    try:
        for name in wanted:
            began = time.monotonic()
            limit = limit_of(name, wanted[1:], session.left(float("inf")), seconds)
            part = played(session, name, limit)
            if name == "doctor" and part.ok is False:
                print(f"no lane on a GPU can run here: {part.said}", file=sys.stderr)
                return NO_GPU
            print(f"{name}: {_said(part)}", file=sys.stderr, flush=True)
            parts[name] = part
            write("")
            if part.ok is not True and (why := gone(session)):
                late = wanted[wanted.index(name) + 1 :]
                parts |= {n: Part(n, "left out", None, 0.0, 0.0, why) for n in late}
                print(f"{why}; left out: {', '.join(late) or 'no part'}", file=sys.stderr)
                break
    except InterruptedBy as by:
        said = f"interrupted by {by}"
        spent = round(time.monotonic() - began, 1)
        parts[name] = Part(name, "cut", None, spent, limit, said)
        write(said)
        print(f"{name}: {said}; what was gathered is in {session.out}", file=sys.stderr)
        return 128 + by.number
    write("by itself")
    return 0 if all(part.ok and part.state == "done" for part in parts.values()) else 1


def _said(part: Part) -> str:
    mark = {True: "as it must be", False: "NOT as it must be", None: "unknown"}[part.ok]
    mark = f"what ran is {mark}" if part.ok and part.state != "done" else mark
    said = f". {part.said}" if part.said else ""
    return f"{part.state}, {mark}, {part.seconds:.0f} s of {part.limit:.0f}{said}"


def interrupt(number: int, frame: Any) -> None:
    """End on a signal, once: the next one must not break off what the first one has begun."""
    for one in ENDINGS:
        signal.signal(one, signal.SIG_IGN)
    raise InterruptedBy(number)


def begin(asked: argparse.Namespace, arguments: list[str], scratch: Path) -> int:
    """Play here, or in an environment of the wheels, which takes this process over."""
    began = time.monotonic()
    if asked.wheels is not None:
        try:
            python = installed(asked.wheels, scratch / "environment")
        except OfflineError as error:
            print(f"run.sh: {error}", file=sys.stderr)
            return NO_GPU
        left = asked.seconds - (time.monotonic() - began)
        words = [*arguments, "--seconds", f"{left:.0f}", "--scratch", str(scratch)]
        print(f"installed: {asked.seconds - left:.0f} s", file=sys.stderr, flush=True)
        command = [str(python), __file__, *words, "--installed"]
        os.execv(python, command)  # noqa: S606 - the interpreter that was just installed
    missing = [name for name in NEEDED if not _importable(name)]
    if missing:
        said = f"{sys.executable} has no {', '.join(missing)}"
        print(f"run.sh: {said}; --wheels DIR brings them, or PYTHON names another", file=sys.stderr)
        return NO_GPU
    asked.out.mkdir(parents=True, exist_ok=True)
    wanted = [n for n in PARTS if n == "doctor" or not asked.only or n in asked.only]
    until = time.monotonic() + asked.seconds
    session = Session(asked.out, scratch, until, tuple(asked.case), asked.rounds)
    return play(session, wanted, asked.seconds)


def _importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--only", action="append", choices=[*PARTS], metavar="PART")
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=5)
    # of the process that installed the wheels, to the one that it becomes
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--installed", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.installed:
        asked.wheels = None
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # nohup: it is to go on
    for number in ENDINGS:
        if number != signal.SIGHUP or not ignored:
            signal.signal(number, interrupt)
    scratch = asked.scratch or Path(tempfile.mkdtemp(prefix="specrepro-gpu-"))
    try:
        return begin(asked, arguments, scratch)
    except InterruptedBy as by:
        print(f"run.sh: interrupted by {by}; nothing was begun", file=sys.stderr)
        return 128 + by.number
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
