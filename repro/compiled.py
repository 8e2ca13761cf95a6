"""Shipped kernels: their PTX, their manifest, and what a launch must keep to.

The manifest (schema 1) beside a kernel's PTX says what the PTX was made of and what it expects.
Reading it needs neither compiler nor device.
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import KernelError, LaunchRefusedError, StaleKernelError
from .ops import Argument, Tensor

if TYPE_CHECKING:
    from .emulator.ptx import Kernel

SCHEMA = 1
TARGET = "sm_80"
PACKAGE = Path(__file__).resolve().parents[1]
SCRATCH = "scratch"  # type of the trailing pointers of Triton kernels; null in a launch
# Element types of pointers; b16 is any type of 16 bits, moved as it is.
DTYPES: Mapping[str, np.dtype[Any]] = {
    "fp16": np.dtype(np.float16),
    "fp32": np.dtype(np.float32),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
INTEGER_BITS = {"i32": 32, "i64": 64}
FP32_MAX = float(np.finfo(np.float32).max)
INSTALL_COMPILERS = "install the extra `kernels`; in a checkout: pip install -e '.[kernels]'"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter. `align`: bytes its address is a multiple of (pointers)."""

    name: str
    type: str
    align: int = 1
    nullable: bool = False

    @property
    def pointer(self) -> bool:
        return self.type.startswith("*")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a kernel's PTX was made of and what it expects.

    threads: of a block, in x, y, z. shared_bytes: dynamic shared memory of a block. constants: tile
    sizes compiled in. limits: the largest value a parameter may have. parameters: in device order.
    """

    op: str
    language: str
    source: str
    source_sha256: str
    compiler: str
    compiler_version: str
    target: str
    entry: str
    threads: tuple[int, int, int]
    shared_bytes: int
    parameters: tuple[Parameter, ...]
    constants: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the parameters a launch gives, in device order: all but scratch pointers."""
        return tuple(p.name for p in self.parameters if p.type != SCRATCH)

    def to_json(self) -> dict[str, Any]:
        """The manifest file's object."""
        parameters = []
        for p in self.parameters:
            entry: dict[str, Any] = {"name": p.name, "type": p.type, "align": p.align}
            if p.nullable:
                entry["nullable"] = True
            parameters.append(entry)
        return {
            "schema": SCHEMA,
            "op": self.op,
            "language": self.language,
            "source": self.source,
            "source_sha256": self.source_sha256,
            "compiler": {"name": self.compiler, "version": self.compiler_version},
            "target": self.target,
            "entry": self.entry,
            "threads": list(self.threads),
            "shared_bytes": self.shared_bytes,
            "constants": dict(self.constants),
            "limits": dict(self.limits),
            "parameters": parameters,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        """Read what `to_json` wrote; ValueError on anything else."""
        if not isinstance(data, Mapping):
            raise ValueError("not an object")  # noqa: TRY004 - one error for all bad content
        if data.get("schema") != SCHEMA:
            raise ValueError(f"schema {data.get('schema')!r}, known is {SCHEMA}")
        try:
            x, y, z = (int(n) for n in data["threads"])
            return cls(
                op=str(data["op"]),
                language=str(data["language"]),
                source=str(data["source"]),
                source_sha256=str(data["source_sha256"]),
                compiler=str(data["compiler"]["name"]),
                compiler_version=str(data["compiler"]["version"]),
                target=str(data["target"]),
                entry=str(data["entry"]),
                threads=(x, y, z),
                shared_bytes=int(data["shared_bytes"]),
                parameters=tuple(
                    Parameter(
                        str(p["name"]), str(p["type"]), int(p["align"]), bool(p.get("nullable"))
                    )
                    for p in data["parameters"]
                ),
                constants={str(k): int(v) for k, v in data["constants"].items()},
                limits={str(k): int(v) for k, v in data["limits"].items()},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a manifest: {error!r}") from error


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel ready to run. shipped: the PTX is the package's, not recompiled just now. cubin:
    machine code for the manifest's target, where it was asked for.
    """

    manifest: Manifest
    ptx: str
    shipped: bool
    cubin: bytes | None = None

    def parsed(self) -> Kernel:
        """The kernel as the emulator executes it; parsed once a process."""
        return _parsed(self.ptx, self.manifest.entry)


def sha256_of_source(text: bytes) -> str:
    """Hash of a kernel source; the same for both line endings a checkout may have."""
    return hashlib.sha256(text.replace(b"\r\n", b"\n")).hexdigest()


def load(op: str, root: Path | None = None) -> CompiledKernel:
    """The kernel of `op`, of the package or of another tree that holds `kernels/`.

    Equal files give the same object. An edited source is compiled again, for this process only.
    StaleKernelError where that takes a compiler that is not here, KernelError where the files
    cannot be used.
    """
    root = PACKAGE if root is None else root
    known = _LOADED.get((op, root))
    if known is not None and _stamps(known[0]) == known[1]:
        return known[2]
    folder = root / "kernels" / op
    began = time.time_ns()
    try:
        files: tuple[Path, ...] = (folder / "ptx" / "manifest.json",)
        text = files[0].read_text(encoding="utf-8")
        manifest = Manifest.from_json(json.loads(text))
        files += (root / manifest.source, folder / "ptx" / f"{manifest.target}.ptx")
        stamps = _stamps(files)
        source, ptx = files[1].read_bytes(), files[2].read_text(encoding="utf-8")
    except OSError as error:
        raise KernelError(f"kernel {op} is incomplete: {error}", where=str(folder)) from error
    except ValueError as error:
        where = str(folder / "ptx" / "manifest.json")
        raise KernelError(f"manifest of kernel {op}: {error}", where=where) from error
    kernel = _checked(op, root, manifest.source, sha256_of_source(source), text, ptx)
    # None changed while it was read, nor so lately that it may change again under the same time.
    if stamps is not None and max(max(stamp[:2]) for stamp in stamps) < began - SETTLED:
        _LOADED[op, root] = (files, stamps, kernel)
    return kernel


# By op and root: the files that were read, what tells them from edited ones, the kernel.
Stamps = tuple[tuple[int, int, int, int], ...]
_LOADED: dict[tuple[str, Path], tuple[tuple[Path, ...], Stamps, CompiledKernel]] = {}
SETTLED = 2_000_000_000  # ns after which a change of a file has another time, on any file system


def _stamps(files: tuple[Path, ...]) -> Stamps | None:
    """Times of last change, size and number of each file; None where one cannot be looked at."""
    try:
        found = [os.stat(file) for file in files]
    except OSError:
        return None
    return tuple((s.st_mtime_ns, s.st_ctime_ns, s.st_size, s.st_ino) for s in found)


@lru_cache(maxsize=64)
def _parsed(ptx: str, entry: str) -> Kernel:
    from .emulator.ptx import parse

    return parse(ptx).kernels[entry]


@lru_cache(maxsize=64)
def _checked(
    op: str, root: Path, source: str, sha256: str, manifest_text: str, ptx: str
) -> CompiledKernel:
    manifest = Manifest.from_json(json.loads(manifest_text))
    if manifest.source_sha256 == sha256:
        return CompiledKernel(manifest, ptx, shipped=True)
    from .compilation import CompilerMissingError, compile_kernel

    try:
        return compile_kernel(op, root)
    except CompilerMissingError as error:
        raise StaleKernelError(
            f"edited since its PTX was compiled, and compiling it again needs {error}",
            where=source,
            hint=INSTALL_COMPILERS,
        ) from error


def check_arguments(manifest: Manifest, args: Mapping[str, Argument]) -> None:
    """Refuse arguments that break what the kernel was compiled for.

    args: by name, a launch's. LaunchRefusedError names the parameter, the value and the rule.
    """
    if args.keys() != set(manifest.arguments):
        missing = sorted(set(manifest.arguments) - args.keys())
        unknown = sorted(args.keys() - set(manifest.arguments))
        raise LaunchRefusedError(f"{manifest.op}: arguments missing {missing}, unknown {unknown}")
    for parameter in manifest.parameters:
        if parameter.type == SCRATCH:
            continue
        value = args[parameter.name]
        broken = _broken_rule(parameter, value)
        limit = manifest.limits.get(parameter.name)
        if broken is None and limit is not None and operator.index(value) > limit:  # type: ignore[arg-type]
            broken = f"at most {limit}, the tile the kernel was compiled with"
        if broken is not None:
            raise LaunchRefusedError(
                f"{manifest.op}: {parameter.name} = {value!r}, but it must be {broken}",
                where=manifest.source,
            )


def _broken_rule(parameter: Parameter, value: Argument) -> str | None:
    if parameter.pointer:
        return _broken_pointer_rule(parameter, value)
    if parameter.type in INTEGER_BITS:
        bits = INTEGER_BITS[parameter.type]
        try:
            number = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            return f"an integer of {bits} bits"
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            return f"an integer of {bits} bits"
        return None
    if isinstance(value, (int, float, np.floating, np.integer)):
        within = not np.isfinite(value) or abs(value) <= FP32_MAX
        return None if within else "within the range of fp32"
    return "a number"


def _broken_pointer_rule(parameter: Parameter, value: Argument) -> str | None:
    if value is None:
        return None if parameter.nullable else "a tensor"
    if not isinstance(value, Tensor):
        return "a tensor"
    wanted = DTYPES.get(parameter.type[1:])
    if wanted is None:
        if value.dtype.itemsize != 2:
            return "a tensor of a 16-bit type"
    elif value.dtype != wanted:
        return f"a tensor of {wanted.name}"
    address = value.data.__array_interface__["data"][0]
    if address % parameter.align:
        return f"aligned to {parameter.align} bytes (its address is {address:#x})"
    return None
