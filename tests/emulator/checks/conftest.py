"""Planted faults and their near misses: the texts kept in ptx/, and fresh ones where they can be.

`python tests/emulator/checks/conftest.py` writes the texts anew.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specrepro.repro.compilation import nvrtc
from specrepro.repro.emulator import checks
from specrepro.repro.emulator.launch import Buffer, LaunchReport, launch
from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.ptx_text import normalise

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).parent
KEPT = FOLDER / "ptx"
WARPS = 4
# Programs of programs.py: the numbers of a tile, and whether they take n.
PROGRAMS = {
    "total": (256, False),
    "best": (256, False),
    "running": (256, False),
    "transposed": (64, False),
    "sorted_row": (256, False),
    "normalised": (256, False),
    "row_tail": (256, True),
    "row_masked": (256, True),
    "accumulate": (256, True),
    "counted": (256, True),
    "shifted": (256, True),
    "strided": (256, True),
    "in_place": (256, True),
    "summed": (256, True),
}


def compiled_cuda() -> str:
    """faults.cu as NVRTC writes it."""
    return normalise(nvrtc((FOLDER / "faults.cu").read_bytes(), "faults.cu").ptx, "faults.cu")


def compiled_triton() -> dict[str, str]:
    """The programs as Triton writes them, one text each."""
    from triton import compile as compile_source
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location("planted_programs", FOLDER / "programs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    texts = {}
    for name, (size, takes_n) in PROGRAMS.items():
        signature = {"x": "*fp32", "out": "*fp32", **({"n": "i32"} if takes_n else {})}
        source = ASTSource(
            fn=getattr(module, name),
            signature={**signature, "N": "constexpr"},
            constexprs={"N": size},
            attrs={(n,): [["tt.divisibility", 16]] for n in range(2)},
        )
        options = {"num_warps": WARPS, "num_stages": 1, "enable_fp_fusion": False}
        made = compile_source(source, target=GPUTarget("cuda", 80, 32), options=options)
        texts[name] = normalise(made.asm["ptx"], "programs.py")
    return texts


def kept() -> dict[str, str]:
    """The kept texts: `faults`, and one a program."""
    return {path.stem: path.read_text() for path in sorted(KEPT.glob("*.ptx"))}


def fresh() -> dict[str, str]:
    pytest.importorskip("triton", reason="Triton is not installed", exc_type=ImportError)
    for wheel in ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime"):
        try:
            importlib.metadata.version(wheel)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{wheel} is not installed")
    return {"faults": compiled_cuda(), **compiled_triton()}


@pytest.fixture(
    scope="session", params=["kept", pytest.param("fresh", marks=pytest.mark.compilers)]
)
def texts(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """PTX by name."""
    return kept() if request.param == "kept" else fresh()


@pytest.fixture(scope="session")
def cuda(texts: Mapping[str, str]) -> Mapping[str, Kernel]:
    """The kernels of faults.cu."""
    return parse(texts["faults"]).kernels


class Marks:
    """The lines that faults.cu names."""

    def __init__(self) -> None:
        lines = (FOLDER / "faults.cu").read_text().splitlines()
        found = ((number, re.search(r"//! (.+)$", line)) for number, line in enumerate(lines, 1))
        self.lines = {match[1]: number for number, match in found if match}

    def __getitem__(self, name: str) -> int:
        return self.lines[name]


@pytest.fixture(scope="session")
def marks() -> Marks:
    return Marks()


@pytest.fixture(scope="session")
def run_cuda(cuda: Mapping[str, Kernel]) -> Callable[..., LaunchReport]:
    """run_cuda(name): 2 blocks of 128 threads on out and in, all checks on."""

    def go(name: str, *, written: Array | None = None, **more: Any) -> LaunchReport:
        numbers = np.arange(256, dtype=np.int32) * 7
        out = Buffer("out", np.zeros(256, np.int32), more.pop("owners", None), None, written)
        args = [out, Buffer("in", numbers)]
        return launch(cuda[name], (2, 1, 1), (128, 1, 1), args, checks=checks.ALL, **more)

    return go


@pytest.fixture(scope="session")
def run_triton(texts: Mapping[str, str]) -> Callable[..., LaunchReport]:
    """run_triton(name, n): `programs` programs on x and out of 1024 numbers, all checks on.

    edit: of the text first. x, out: their Buffers.
    """

    def go(
        name: str,
        n: int = 0,
        *,
        programs: int = 1,
        edit: Callable[[str], str] = str,
        x: Buffer | None = None,
        out: Buffer | None = None,
        **more: Any,
    ) -> LaunchReport:
        (kernel,) = parse(edit(texts[name])).kernels.values()
        args: list[Any] = [x or numbers("x", 1), out or numbers("out", 2)]
        args += [n] if PROGRAMS[name][1] else []
        shared = 1 << 14
        block = (32 * WARPS, 1, 1)
        return launch(
            kernel, (programs, 1, 1), block, args, shared_bytes=shared, checks=checks.ALL, **more
        )

    return go


def numbers(name: str, seed: int, **more: Any) -> Buffer:
    """1024 random floats at a multiple of 256 bytes."""
    raw = np.zeros(1024 + 64, np.float32)
    first = -raw.ctypes.data % 256 // 4
    data = raw[first : first + 1024]
    data[:] = np.random.default_rng(seed).normal(size=1024)
    return Buffer(name, data, **more)


@pytest.fixture(scope="session")
def floats() -> Callable[..., Buffer]:
    """floats(name, seed, initialised=..., owners=...): 1024 of them."""
    return numbers


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    (KEPT / "faults.ptx").write_text(compiled_cuda())
    for program, text in compiled_triton().items():
        (KEPT / f"{program}.ptx").write_text(text)
