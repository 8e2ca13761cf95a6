"""The child that compiles one lifted kernel: loads Triton, locks itself, executes the lifted
module, says one line of JSON.

Its folder holds `code/check/…` (this and the lock), `kernel.py` and `job.json`. The lifted module
is code of a build: what it does at its top level is done behind the lock. Only text comes out. One
kernel a process, so that none can answer for another.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..probing.isolation import lock

MEMORY = 4 << 30  # bytes of address space; Triton's library alone maps 0.5
DETAIL = 600  # characters of what a compiler says
PTX_VERSION = 80  # given, because Triton would ask ptxas for it, and no process starts here
ALIGNMENT = 16  # bytes: what Triton's launcher finds of every pointer that torch allocated
STAGES = ("ttir", "ttgir", "llir", "ptx")


def main(folder: Path, out: int) -> None:
    """Compile the kernel of the job in `folder`; the answer goes to the descriptor `out`."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    sys.path.append(job["packages"])
    compiler = _Compiler(job)
    sys.path.remove(job["packages"])
    library = {Path(sysconfig.get_path(n)) for n in ("stdlib", "platstdlib")}
    holds, fails = lock([folder, compiler.home, *library], job["cpu_seconds"], MEMORY)
    _say(out, {"holds": holds, "fails": fails})
    try:
        said = compiler.compile(folder / "kernel.py")
    except Exception as error:
        # the lifted code and Triton fail in their own ways: the kernel is then not known
        again = isinstance(error, MemoryError | OSError)  # the machine's, perhaps, not the text's
        said = {"unknown": _words(error)[:DETAIL], "again": again}
    _say(out, said)


class _Compiler:
    """Triton with all it loads, before the lock."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        import triton
        import triton.language.extra.libdevice
        from triton._C.libtriton import ir
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import ASTSource, make_backend

        self.job = job
        self.home = Path(str(triton.__file__)).parent
        self.ir = ir
        self.source = ASTSource
        self.target = GPUTarget("cuda", job["arch"], 32)
        self.backend = make_backend(self.target)

    def compile(self, path: Path) -> dict[str, Any]:
        """Execute the lifted module and compile its kernel; all but `ptxas`."""
        namespace: dict[str, Any] = {"__name__": "kernel"}
        exec(compile(path.read_bytes(), str(path), "exec"), namespace)  # noqa: S102 - locked
        kernel = namespace[self.job["entry"]]
        types: Mapping[str, str] = self.job["types"]
        pointers = [n for n, kind in enumerate(types.values()) if kind.startswith("*")]
        source = self.source(
            fn=kernel,
            signature=dict(types),
            constexprs=dict(self.job["constants"]),
            attrs={(place,): [["tt.divisibility", ALIGNMENT]] for place in pointers},
        )
        options = self.backend.parse_options(
            {
                "num_warps": self.job["warps"],
                "num_stages": 1,
                "enable_fp_fusion": False,
                "ptx_version": PTX_VERSION,
                **source.parse_options(),
            }
        )
        context = self.ir.context()
        self.ir.load_dialects(context)
        self.backend.load_dialects(context)
        module = source.make_ir(
            self.target,
            options,
            self.backend.get_codegen_implementation(options),
            self.backend.get_module_map(),
            context,
        )
        stages: dict[str, Any] = {}
        self.backend.add_stages(stages, options, source.language)
        metadata: dict[str, Any] = {"target": self.target, **options.__dict__}
        for stage in STAGES:
            module = stages[stage](module, metadata)
        return {
            "ptx": str(module),
            "entry": str(metadata["name"]),
            "warps": int(metadata["num_warps"]),
            "shared": int(metadata["shared"]),
            "scratch": [
                int(metadata.get(f"{use}_scratch_size") or 0) for use in ("global", "profile")
            ],
        }


def _words(error: BaseException) -> str:
    """An exception and its causes; Triton says in the last one what it missed."""
    said: list[str] = []
    one: BaseException | None = error
    while one is not None and len(said) < 4:
        text = " ".join(line.strip() for line in str(one).splitlines() if line.strip(" ^"))
        said.append(f"{type(one).__name__}: {text}".strip(": "))
        one = one.__cause__
    return "; ".join(reversed(said))


def _say(out: int, line: Mapping[str, Any]) -> None:
    data = json.dumps(line, default=str).encode() + b"\n"
    while data:
        data = data[os.write(out, data) :]
