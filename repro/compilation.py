"""Compile kernels ahead of time, without a device, a driver or torch.

`python -m specrepro.repro.compilation [OP...]` writes kernels/<op>/ptx anew (from a checkout).
Triton's own front end compiles kernel.py; NVRTC, called through ctypes, compiles kernel.cu. Both
come from wheels and are imported where they are used.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from ctypes import byref, c_char_p, c_size_t, c_void_p, create_string_buffer
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from .compiled import (
    PACKAGE,
    SCRATCH,
    TARGET,
    CompiledKernel,
    Manifest,
    Parameter,
    sha256_of_source,
)
from .cuda_signature import cuda_parameters
from .errors import KernelError
from .ptx_text import normalise

TRITON_ALIGNMENT = 16  # bytes; what Triton's own launcher specialises pointers for
NVRTC_WHEEL, HEADERS_WHEEL = "nvidia-cuda-nvrtc", "nvidia-cuda-runtime"


class CompilerMissingError(KernelError):
    """A compiler or its headers are not installed; the message names the package."""


def compile_kernel(
    op: str, root: Path | None = None, *, target: str = TARGET, machine_code: bool = False
) -> CompiledKernel:
    """Compile kernels/<op>/kernel.py or kernel.cu for a target such as sm_90.

    machine_code: a cubin with line numbers too. CompilerMissingError without the compilers,
    KernelError with the compiler's own words where it refuses the source.
    """
    root = PACKAGE if root is None else root
    for name, build in (("kernel.py", _compile_triton), ("kernel.cu", _compile_cuda)):
        path = root / "kernels" / op / name
        if path.is_file():
            return build(op, path, f"kernels/{op}/{name}", target, machine_code)
    raise KernelError(f"no kernel.py or kernel.cu for op {op}", where=str(root / "kernels" / op))


def compiler_version(language: str) -> str:
    """Version of the installed compiler of `triton` or `cuda`; CompilerMissingError without it."""
    wheel = {"triton": "triton", "cuda": NVRTC_WHEEL}[language]
    return _distribution(wheel).version


def _distribution(wheel: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(wheel)
    except importlib.metadata.PackageNotFoundError as error:
        raise CompilerMissingError(wheel) from error


def _compile_triton(
    op: str, path: Path, source: str, target: str, machine_code: bool
) -> CompiledKernel:
    version = compiler_version("triton")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    try:
        module = source_module(path, f"specrepro_kernel_{op}")
        signature: Mapping[str, str] = module.SIGNATURE
        constants: Mapping[str, int] = module.CONSTANTS
        kernel = ASTSource(
            fn=getattr(module, op),
            signature={**signature, **dict.fromkeys(constants, "constexpr")},
            constexprs=dict(constants),
            attrs={
                (place,): [["tt.divisibility", TRITON_ALIGNMENT]]
                for place, kind in enumerate(signature.values())
                if kind.startswith("*")
            },
        )
        # Without fusion the PTX says where each result is rounded, on every device alike.
        options = {
            "num_warps": getattr(module, "NUM_WARPS", 1),
            "num_stages": 1,
            "enable_fp_fusion": False,
        }
        device = GPUTarget("cuda", int(target.removeprefix("sm_")), 32)
        with tempfile.TemporaryDirectory() as cache, triton.knobs.cache.scope():
            triton.knobs.cache.dir = cache  # the user's cache is neither read nor filled
            compiled = triton.compile(kernel, target=device, options=options)
    except Exception as error:  # whatever a source or Triton raises, it is the source's fault
        raise KernelError(f"Triton {version} refuses it: {error}", where=source) from error
    metadata = compiled.metadata
    if metadata.global_scratch_size or metadata.profile_scratch_size:
        raise KernelError("it needs scratch memory, which no lane provides", where=source)
    nullable = getattr(module, "NULLABLE", ())
    parameters = [
        Parameter(name, kind, TRITON_ALIGNMENT if kind.startswith("*") else 1, name in nullable)
        for name, kind in signature.items()
    ]
    parameters += [Parameter(f"{use}_scratch", SCRATCH) for use in ("global", "profile")]
    manifest = Manifest(
        op=op,
        language="triton",
        source=source,
        source_sha256=sha256_of_source(path.read_bytes()),
        compiler="triton",
        compiler_version=version,
        target=target,
        entry=metadata.name,
        threads=(32 * metadata.num_warps, 1, 1),
        shared_bytes=metadata.shared,
        constants=dict(constants),
        limits=dict(getattr(module, "LIMITS", {})),
        parameters=tuple(parameters),
    )
    cubin = compiled.asm["cubin"] if machine_code else None
    ptx = normalise(compiled.asm["ptx"], source)
    return CompiledKernel(manifest, ptx, shipped=False, cubin=cubin)


class _Uncached(SourceFileLoader):
    """Reads and leaves no bytecode: an edit within the same second counts, the folder stays."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"no bytecode for {path}")


def source_module(path: Path, name: str) -> ModuleType:
    """The module of a source file, executed here; whatever it raises comes through."""
    loader = _Uncached(name, str(path))
    module = ModuleType(name)
    module.__file__ = str(path)
    loader.exec_module(module)
    return module


def _compile_cuda(
    op: str, path: Path, source: str, target: str, machine_code: bool
) -> CompiledKernel:
    version = compiler_version("cuda")
    text = path.read_bytes()
    made = nvrtc(text, source, target=target, machine_code=machine_code)
    # `.maxntid 64, 1, 1` up to sm_90, `.maxntid 64` from sm_100 on
    threads = re.search(r"^\.maxntid (\d+)(?:, (\d+))?(?:, (\d+))?$", made.ptx, re.MULTILINE)
    if threads is None:
        raise KernelError("it has no __launch_bounds__", where=source)
    manifest = Manifest(
        op=op,
        language="cuda",
        source=source,
        source_sha256=sha256_of_source(text),
        compiler="nvrtc",
        compiler_version=version,
        target=target,
        entry=op,
        threads=(int(threads[1]), int(threads[2] or 1), int(threads[3] or 1)),
        shared_bytes=0,
        parameters=cuda_parameters(text.decode("utf-8"), op, source),
    )
    return CompiledKernel(manifest, normalise(made.ptx, source), shipped=False, cubin=made.cubin)


def _file_of(wheel: str, pattern: str) -> Path:
    for file in _distribution(wheel).files or ():
        if re.fullmatch(pattern, file.name):
            return Path(str(file.locate()))
    raise CompilerMissingError(f"{wheel} with a file named {pattern}")


@dataclass(frozen=True, slots=True)
class Compiled:
    """What NVRTC made. lowered: the name in the PTX of each expression that was asked for. cubin:
    machine code with line numbers, where that was asked for.
    """

    ptx: str
    lowered: Mapping[str, str]
    cubin: bytes | None = None


def cuda_headers() -> tuple[Path, ...]:
    """The folders of the CUDA headers; CompilerMissingError without them.

    The wheel of the C++ library, which cooperative groups need, has a folder of its own.
    """
    include = _file_of(HEADERS_WHEEL, r"cuda_fp16\.h").parent
    return tuple(folder for folder in (include, include / "cccl") if folder.is_dir())


def nvrtc(
    text: bytes,
    source: str,
    *,
    folders: Sequence[Path] = (),
    headers: Mapping[str, str] | None = None,
    implied: Sequence[str] = (),
    expressions: Sequence[str] = (),
    target: str = TARGET,
    machine_code: bool = False,
) -> Compiled:
    """Compile CUDA C++; `source` is the name of the file in messages and `.loc` lines.

    folders: where includes are looked for besides the CUDA headers. headers: name → text of more.
    implied: headers that are included before the first line.
    expressions: C++ names of kernels, such as `scale<float>`, that the PTX is to hold.
    CompilerMissingError without NVRTC, KernelError with its own words where it refuses the source.
    """
    library: Any = ctypes.CDLL(str(_file_of(NVRTC_WHEEL, r"libnvrtc\.so\.\d+|nvrtc64_\d+_0\.dll")))
    program = c_void_p()
    arch = target if machine_code else target.replace("sm", "compute")
    options = [f"-arch={arch}".encode(), b"-lineinfo", b"-std=c++17"]
    options += [b"-I" + str(folder).encode() for folder in (*cuda_headers(), *folders)]
    options += [f"--pre-include={name}".encode() for name in implied]
    given = {} if headers is None else headers
    texts = (c_char_p * len(given))(*(one.encode() for one in given.values()))
    names = (c_char_p * len(given))(*(one.encode() for one in given))
    code = library.nvrtcCreateProgram(
        byref(program), text, source.encode(), len(given), texts, names
    )
    if code:
        raise KernelError(f"NVRTC cannot start: error {code}", where=source)
    try:
        for expression in expressions:
            library.nvrtcAddNameExpression(program, expression.encode())
        array = (c_char_p * len(options))(*options)
        code = library.nvrtcCompileProgram(program, len(options), array)
        if code:
            log = _text(_bytes_of(library, program, "ProgramLog")).strip()
            raise KernelError(f"NVRTC refuses it: {log or f'error {code}'}", where=source)
        lowered = {one: _lowered(library, program, one, source) for one in expressions}
        cubin = _bytes_of(library, program, "CUBIN") if machine_code else None
        return Compiled(_text(_bytes_of(library, program, "PTX")), lowered, cubin)
    finally:
        library.nvrtcDestroyProgram(byref(program))


def _lowered(library: Any, program: c_void_p, expression: str, source: str) -> str:
    name = c_char_p()
    code = library.nvrtcGetLoweredName(program, expression.encode(), byref(name))
    if code or name.value is None:
        raise KernelError(f"it has no kernel {expression}", where=source)
    return name.value.decode()


def _bytes_of(library: Any, program: c_void_p, what: str) -> bytes:
    size = c_size_t()
    library[f"nvrtcGet{what}Size"](program, byref(size))
    buffer = create_string_buffer(size.value)
    library[f"nvrtcGet{what}"](program, buffer)
    return buffer.raw


def _text(raw: bytes) -> str:
    """What C holds as text: up to its first zero."""
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def write(kernel: CompiledKernel, root: Path | None = None) -> None:
    """Make `kernel` the shipped one of its op."""
    root = PACKAGE if root is None else root
    folder = root / "kernels" / kernel.manifest.op / "ptx"
    folder.mkdir(exist_ok=True)
    text = json.dumps(kernel.manifest.to_json(), indent=2) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8", newline="\n")
    (folder / f"{kernel.manifest.target}.ptx").write_text(
        kernel.ptx, encoding="utf-8", newline="\n"
    )


def main(ops: Sequence[str]) -> int:
    """Compile and write `ops`, or all; the exit status."""
    if not (PACKAGE / "pyproject.toml").is_file():
        print("only a checkout's kernels can be written anew", file=sys.stderr)
        return 2
    every = sorted(path.parent.name for path in (PACKAGE / "kernels").glob("*/kernel.*"))
    for op in ops or every:
        kernel = compile_kernel(op)
        write(kernel)
        print(f"{op}: {kernel.ptx.count(chr(10))} lines by {kernel.manifest.compiler}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
