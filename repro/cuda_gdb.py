"""The files of GPU core dumps: which there are, what cuda-gdb says of one, and their end.

cuda-gdb is not needed: without it the driver's own lines name the exception and the kernel, and
block and thread stay unknown. It reads no file of the user's, and none of a dump's folder but the
dump.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .coredump import PREFIX, Dump, debugger
from .escape import quoted

NAME = "cuda-gdb"
PATIENCE = 60.0  # seconds for one dump
LARGEST_TEXT = 4 << 20  # bytes of what it says
ASKED = ("info cuda kernels", "info cuda devices", "bt")


@dataclass(frozen=True, slots=True)
class Said:
    """What cuda-gdb said of a dump. complaint: why nothing is known of it, "" if something is."""

    dump: Dump
    complaint: str = ""


def find(environ: Mapping[str, str]) -> str | None:
    """The path of cuda-gdb: on PATH, or in CUDA_HOME or CUDA_PATH. None where it is not."""
    places = [environ.get("PATH", "")]
    places += [str(Path(environ[n], "bin")) for n in ("CUDA_HOME", "CUDA_PATH") if environ.get(n)]
    return next((found for place in places if (found := shutil.which(NAME, path=place))), None)


def files(folder: Path) -> list[Path]:
    """The dumps in a folder, oldest first; [] where it cannot be looked at."""
    try:
        found = [p for p in folder.glob(f"{PREFIX}*") if p.is_file() and not p.is_symlink()]
        return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))
    except OSError:
        return []


def inspect(dump: Path, environ: Mapping[str, str], patience: float = PATIENCE) -> Said:
    """Ask cuda-gdb about a dump. Never raises: a debugger that is not there is an answer."""
    command = find(environ)
    if command is None:
        return Said(Dump(), f"no {NAME} on PATH or in CUDA_HOME: block and thread are unknown")
    words = [command, "--batch", "-nx", "-iex", "set auto-load off", "-ex", "set pagination off"]
    # the name alone: gdb splits its commands at spaces, which the folder may have
    words += ["-ex", f"target cudacore {dump.name}"]
    words += [word for asked in ASKED for word in ("-ex", asked)]
    try:
        done = subprocess.run(
            words,
            cwd=dump.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Said(Dump(), f"{NAME} did not end within {patience:g} s")
    except OSError as error:
        return Said(Dump(), f"{quoted(command)} cannot be started: {error.strerror}")
    text = done.stdout[:LARGEST_TEXT].decode(errors="replace")
    said = debugger(text.splitlines())
    if said == Dump():
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "nothing")
        return Said(said, f"{NAME} says of {quoted(dump.name)}: {quoted(last.strip())}")
    return Said(said)


def remove(folder: Path) -> int:
    """Delete the dumps of a folder; the bytes they took."""
    freed = 0
    for path in files(folder):
        try:
            size = path.stat().st_size
            os.unlink(path)
        except OSError:
            continue  # it stays, and is not counted
        freed += size
    return freed
