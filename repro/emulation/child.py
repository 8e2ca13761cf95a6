"""The process in which a kernel of the user is compiled or executed: reads a job, writes a result.

The file of a Triton kernel is executed to be compiled, so that is one process and the emulation
another: nothing of the user's runs where findings are made. The parent trusts no more than JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import CaseError, SpecreproError
from ..lanes.child import end_with_parent, limit_memory

Json = Mapping[str, Any]


def main(arguments: list[str]) -> int:
    """Do the job in directory `arguments[0]`; its result.json is there whole or not at all."""
    directory = Path(arguments[0])
    end_with_parent()
    job = json.loads((directory / "job.json").read_text(encoding="utf-8"))
    limit_memory(int(job["memory_limit"]))
    result = perform(job)
    text = json.dumps(result, allow_nan=False)
    (directory / "result.part").write_text(text, encoding="utf-8")
    os.replace(directory / "result.part", directory / "result.json")
    return 0


def perform(job: Json) -> dict[str, Any]:
    """The result of a job, or what is wrong with it under `error`."""
    try:
        if job["do"] == "compile":
            return _compiled(job)
        return _emulated(job)
    except CaseError as error:
        return _error("usage", error, error.key)
    except SpecreproError as error:
        return _error("usage" if error.exit_status == 2 else "unknown", error, None)
    except MemoryError:
        return {
            "error": {
                "kind": "unknown",
                "message": "the memory limit was reached",
                "where": None,
                "key": None,
                "hint": None,
            }
        }


def _error(kind: str, error: SpecreproError, key: str | None) -> dict[str, Any]:
    told = {"message": error.message, "where": error.where, "hint": error.hint}
    return {"error": {"kind": kind, "key": key, **told}}


def _compiled(job: Json) -> dict[str, Any]:
    from .argument_file import read_arguments
    from .triton_source import compile_triton

    x, y, z = job["grid"]
    arguments = read_arguments(Path(job["arguments"]), job["text"])
    return compile_triton(
        Path(job["path"]),
        job["shown"],
        job["entry"],
        (x, y, z),
        arguments,
        job["warps"],
        Path.cwd(),  # which the parent made, and removes however this process ends
    )


def _emulated(job: Json) -> dict[str, Any]:
    from .argument_file import read_arguments
    from .job import emulated
    from .kernel_text import KernelText, renamed

    path = Path(job["path"])
    triton = job["triton"]
    if job["language"] == "cuda":
        from .cuda_source import compile_cuda

        kernel = compile_cuda(path, job["shown"], job["entry"])
    elif triton is not None:
        kernel = KernelText(triton["ptx"], triton["entry"])
    else:
        kernel = KernelText(path.read_text(encoding="utf-8", errors="replace"), job["entry"])
    # compilers name the file by its whole path, or as if it lay where they run
    names = (job["path"], str(Path.cwd() / job["shown"]))
    ptx = renamed(kernel.ptx, names, job["shown"])
    arguments = read_arguments(Path(job["arguments"]), job["text"])
    x, y, z = job["grid"]
    bx, by, bz = job["block"]
    shape = ((x, y, z), (bx, by, bz), int(job["shared"]))
    result = emulated(ptx, kernel.entry, job["shown"], shape, arguments, triton, job["skip"])
    return {**result, "notes": [*kernel.notes, *result["notes"]]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
