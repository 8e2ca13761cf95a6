"""An entry in a process of its own: a fresh interpreter with little of an environment, below a
reaper that ends its whole tree when this process ends or wants it to, however that comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from ..lanes.process import INHERITED
from .entries import ENTRIES, Work
from .task import GRACE, Ended

ERRAND = "specrepro.repro.execution.errand"
ORDER, ENDED, SAID = "order.json", "ended.json", "errand.log"
PULSE = 0.2  # seconds between two looks
END = 15.0  # seconds that the end of a tree may take


def perform_apart(name: str, work: Work, folder: Path, deliver: Path | None = None) -> Ended:
    """Run an entry in a process of its own and wait. What goes wrong with that process, and with
    nothing else, is INFRA.

    folder: of this task, for what is written about it. It is removed, with all in it, by whoever of
    the two ends last. deliver: where the directory is moved as soon as it is whole; None: it stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    order = {
        "entry": name,
        "directory": str(work.directory),
        "deliver": None if deliver is None else str(deliver),
        "timeout": work.timeout,
        "shared": str(work.shared),
        "gpus": list(work.gpus),
    }
    (folder / ORDER).write_text(json.dumps(order), encoding="utf-8")
    ended = folder.with_name(f"{folder.name}.ended")
    reaper = files(__package__.rpartition(".")[0]) / "check" / "engine" / "reaper.py"
    command = [sys.executable, "-I", "-S", str(reaper), str(folder)]
    command += [sys.executable, "-m", ERRAND, str(folder / ORDER), str(ended)]
    began = time.monotonic()
    with (folder / SAID).open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=folder,
            env=environment(name, os.environ),
            start_new_session=True,
        )
    given_up = ""
    try:
        while process.poll() is None and not given_up:
            try:
                process.wait(PULSE)
            except subprocess.TimeoutExpired:
                work.told()
            if work.children.stopped:
                given_up = "not ended: the run was interrupted"
            elif time.monotonic() - began > work.timeout + GRACE:
                given_up = f"no end within {work.timeout + GRACE:g} s"
    finally:
        # its end of the pipe gone, the reaper ends what is left of the tree
        process.communicate(timeout=END)
    try:
        said = json.loads(ended.read_text(encoding="utf-8"))
        ended.unlink()
        return Ended(**said)
    except (OSError, ValueError, TypeError):
        return Ended(infra=given_up or f"its process ended with status {process.returncode}")


def environment(name: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What an entry's process has of the environment of the machine that it runs on."""
    wanted = {*INHERITED, *ENTRIES[name].inherits}
    beginnings = tuple(one.removesuffix("*") for one in wanted if one.endswith("*"))
    taken = {
        key: value
        for key, value in environ.items()
        if key in wanted or (beginnings and key.startswith(beginnings))
    }
    return taken | {"PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
