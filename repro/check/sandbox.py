"""Executes probes over files of a build in a child that can do nothing else.

Code of a build is hostile code here. The child (locked_child.py) has a scratch folder and the
standard library, and is killed with its group when its time is over.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import UntestableError
from ..escape import quoted
from .locked_child import furnish_code, run_locked
from .probing.probe import Lift

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
    """What a child left. answers, lifts: by probe and by kernel, as the child said them, not yet
    looked at.

    holds, fails: the layers of isolation, and those that could not be had and why. ending: "" for
    a child that ended well.
    """

    answers: Mapping[str, Mapping[str, Any]]
    lifts: Mapping[str, Mapping[str, Any]]
    holds: tuple[str, ...]
    fails: tuple[str, ...]
    ending: str
    seconds: float


def execute(
    files: Mapping[str, bytes],
    probes: Sequence[str],
    lifts: Sequence[Lift] = (),
    *,
    seconds: float = SECONDS,
) -> Session:
    """Run `probes` over the members `files` (name → bytes), and lift kernels out of them.
    `seconds` is for all of it."""
    with tempfile.TemporaryDirectory(prefix="specrepro-check-") as scratch:
        folder = Path(scratch)
        _furnish(folder, files, probes, lifts, seconds)
        started = time.monotonic()
        lines, ending = run_locked(folder, START, seconds)
        return _session(lines, ending, time.monotonic() - started)


def _furnish(
    folder: Path,
    files: Mapping[str, bytes],
    probes: Sequence[str],
    lifts: Sequence[Lift],
    seconds: float,
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
    furnish_code(folder, PACKAGES)
    job = {
        "probes": list(probes),
        "lifts": [asdict(lift) for lift in lifts],
        "files": list(files),
        "probe_seconds": min(PROBE_SECONDS, seconds / 2),
        "cpu_seconds": max(1, round(seconds)),
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def _session(lines: bytes, ending: str, seconds: float) -> Session:
    answers: dict[str, Mapping[str, Any]] = {}
    lifts: dict[str, Mapping[str, Any]] = {}
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
        elif "probe" in line or "lift" in line:
            said, name = (answers, line["probe"]) if "probe" in line else (lifts, line["lift"])
            twice = str(name) in said
            said[str(name)] = {"unknown": "it was answered twice"} if twice else line
        elif "done" in line:
            done = True
    if not done:
        ending = ending or "ended before its last answer"
    return Session(answers, lifts, holds, fails, f"the child {ending}" if ending else "", seconds)
