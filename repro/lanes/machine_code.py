"""The machine code of kernels for a device, compiled once for all processes of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from ..compiled import CompiledKernel, Manifest, load

Kernels = Callable[[str, str], CompiledKernel]  # op, target


def shipped(op: str, target: str, kept: Path | None = None) -> CompiledKernel:
    """The kernel of an op for a target: machine code where the compilers are here, else its PTX.

    kept: a folder for machine code of an earlier process of the same run.
    """
    from ..compilation import CompilerMissingError, compile_kernel

    kernel = load(op)
    name = f"{op}-{target}-{hashlib.sha256(kernel.ptx.encode()).hexdigest()[:16]}"
    if kept is not None and (cubin := _kept(kept / name)) is not None:
        return cubin
    try:
        made = compile_kernel(op, target=target, machine_code=True)
    except CompilerMissingError:
        return kernel
    if kept is not None:
        _keep(kept / name, made)
    return made


def _kept(path: Path) -> CompiledKernel | None:
    try:
        manifest = Manifest.from_json(json.loads(path.with_suffix(".json").read_text("utf-8")))
        cubin = path.with_suffix(".cubin").read_bytes()
    except (OSError, ValueError):
        return None  # not kept yet, or half: it is compiled
    return CompiledKernel(manifest, "", shipped=False, cubin=cubin)


def _keep(path: Path, kernel: CompiledKernel) -> None:
    """Two steps, the manifest last: without it nothing is taken over."""
    if kernel.cubin is None:
        return
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".cubin").write_bytes(kernel.cubin)
    manifest = path.with_suffix(".part")
    manifest.write_text(json.dumps(kernel.manifest.to_json()), "utf-8")
    manifest.replace(path.with_suffix(".json"))
