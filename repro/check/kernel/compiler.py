"""Lifted kernels made into PTX, each distinct one once: releases share most of them.

What is remembered is kept under the text, the signature and Triton's version, and was said by a
child that compiled nothing else.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UntestableError
from ...ptx_text import normalise
from ..cache import Cache
from ..locked_child import furnish_code, run_locked
from .lifted import Lifted
from .subject import Binding

ARCH = 80
FORM = "1"  # of what is remembered
SECONDS = 60.0  # of one kernel
MOST = 8 << 20  # bytes of a child's answer
LIFTED = "kernel.py"
INSTALL = "pip install 'specrepro[kernels,check]'"
START = """
import sys
from pathlib import Path
folder = Path(sys.argv[1])
sys.path.insert(0, str(folder / "code"))
from check.compiling.child import main
main(folder, int(sys.argv[2]))
"""


class NotCompiledError(Exception):
    """Triton refused the kernel, or its child ended otherwise; the message says what was said."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """PTX, and what a launch must know. scratch: bytes a block of global and profile scratch."""

    ptx: str
    entry: str
    warps: int
    shared: int
    scratch: tuple[int, int]


@dataclass(slots=True)
class Compiler:
    """Compiles and remembers. made, known: how many kernels were compiled, and were remembered.
    holds, fails: layers of isolation of the children so far."""

    cache: Cache
    version: str
    packages: Path
    made: int = 0
    known: int = 0
    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()

    def compile(
        self, lifted: Lifted, binding: Binding, warps: int, seconds: float = SECONDS
    ) -> Compiled:
        """The kernel as PTX; NotCompiledError where there is none."""
        job = {
            "form": FORM,
            "triton": self.version,
            "arch": ARCH,
            "entry": lifted.entry,
            "types": dict(binding.types),
            "constants": dict(binding.constants),
            "warps": warps,
        }
        words = json.dumps([job, list(binding.types), lifted.text], sort_keys=True)
        key = hashlib.sha256(words.encode()).hexdigest()
        held = self.cache.get("kernels", key)
        if held is not None:
            self.known += 1
            said = json.loads(held)
        else:
            self.made += 1
            said = self._child(job, lifted.text, seconds)
            # a child that was cut off, or refused by the machine, may do better another time
            if not said.get("again"):
                self.cache.put("kernels", key, json.dumps(said).encode())
        if "unknown" in said:
            raise NotCompiledError(str(said["unknown"]))
        return _compiled(said)

    def _child(self, job: Mapping[str, Any], text: str, seconds: float) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="specrepro-compile-") as scratch:
            folder = Path(scratch)
            furnish_code(folder, ("probing", "compiling"))
            (folder / LIFTED).write_text(text, encoding="utf-8")
            told = {**job, "packages": str(self.packages), "cpu_seconds": max(1, round(seconds))}
            (folder / "job.json").write_text(json.dumps(told), encoding="utf-8")
            lines, ending = run_locked(folder, START, seconds, MOST)
        said = self._answer(lines)
        if said is None or (ending and "ptx" in said):
            return {"unknown": f"the compiling child {ending or 'said nothing'}", "again": True}
        return said

    def _answer(self, lines: bytes) -> dict[str, Any] | None:
        """What the child said of the kernel, in a form that nothing it wrote can break."""
        said: dict[str, Any] | None = None
        for number, raw in enumerate(lines.split(b"\n")[:-1]):
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                return None
            if not isinstance(line, dict):
                return None
            if number == 0:
                self.holds = tuple(map(str, line.get("holds", ())))
                self.fails = tuple(map(str, line.get("fails", ())))
            elif said is not None:
                return None  # it answered twice
            elif "unknown" in line:
                said = {"unknown": str(line["unknown"]), "again": bool(line.get("again"))}
            else:
                try:
                    said = {
                        "ptx": normalise(str(line["ptx"]), LIFTED),
                        "entry": str(line["entry"]),
                        "warps": int(line["warps"]),
                        "shared": int(line["shared"]),
                        "scratch": [int(size) for size in line["scratch"]],
                    }
                except (KeyError, TypeError, ValueError):
                    return None
        return said


def compiler(cache: Cache) -> Compiler:
    """A compiler on the Triton that is installed; UntestableError where none is."""
    try:
        found = importlib.metadata.distribution("triton")
    except importlib.metadata.PackageNotFoundError as error:
        raise UntestableError(
            "kernels are compiled by Triton, not installed", hint=INSTALL
        ) from error
    return Compiler(cache, found.version, Path(str(found.locate_file(""))))


def _compiled(said: Mapping[str, Any]) -> Compiled:
    scratch = tuple(int(size) for size in said["scratch"])
    return Compiled(
        str(said["ptx"]),
        str(said["entry"]),
        int(said["warps"]),
        int(said["shared"]),
        (scratch[0], scratch[1]),
    )
