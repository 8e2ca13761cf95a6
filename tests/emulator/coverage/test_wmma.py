"""Products by wmma, as NVRTC compiles them, against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specrepro.repro.compilation import CompilerMissingError, cuda_headers, nvrtc
from specrepro.repro.emulator.checks import ALL
from specrepro.repro.emulator.launch import Buffer, LaunchReport, launch, prepare
from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.errors import UnsupportedError
from specrepro.repro.ptx_text import normalise
from specrepro.repro.records import Kind

Array = np.ndarray[Any, Any]
SOURCE = Path(__file__).parent / "ptx" / "wmma.cu"
KEPT = Path(__file__).parent / "ptx" / "wmma.ptx"
DEPTH, STRIDE = 48, 36  # a row of c is a multiple of 16 bytes, not of 32


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    return dict(parse(KEPT.read_text()).kernels)


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(SOURCE.read_text().split("\n"), 1) if text in line)


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def product(kernel: Kernel, a: Array, b: Array, c: Array) -> LaunchReport:
    """Two blocks of two warps: c[32, STRIDE], a[32, DEPTH], b[32 columns, DEPTH]."""
    buffers = [Buffer(name, data.reshape(-1)) for name, data in (("a", a), ("b", b), ("c", c))]
    return launch(kernel, (2, 1, 1), (32, 2, 1), [*buffers, DEPTH, STRIDE], checks=ALL)


def test_a_product_of_halves_into_floats_is_that_of_numpy(kernels: dict[str, Kernel]) -> None:
    a, b = normal(0, 32, DEPTH), normal(1, 32, DEPTH)
    c = np.full((32, STRIDE), 9, np.float32)
    report = product(kernels["product"], a, b, c)
    assert report.accesses == ()
    assert np.abs(c[:, :32] - 2 * (a.astype(np.float64) @ b.astype(np.float64).T)).max() < 1e-4
    assert (c[:, 32:] == 9).all()


def test_layouts_turn_what_is_loaded_and_not_what_is_stored(kernels: dict[str, Kernel]) -> None:
    a, b, c = normal(0, 16, 16), normal(1, 16, 16), normal(2, 16, 16)
    out = np.zeros((16, 16), np.float16)
    buffers = [
        Buffer(name, data.reshape(-1))
        for name, data in (("a", a), ("b", b), ("c", c), ("out", out))
    ]
    report = launch(kernels["halves"], (1, 1, 1), (32, 1, 1), buffers, checks=ALL)
    assert report.accesses == ()
    wanted = c.T.astype(np.float64) + a.T.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(out - wanted).max() <= np.abs(wanted).max() * 2.0**-10


def test_what_a_fragment_reads_and_writes_too_far_is_found(kernels: dict[str, Kernel]) -> None:
    a, b = normal(0, 31, DEPTH), normal(1, 32, DEPTH)
    c = np.zeros(31 * STRIDE + 20, np.float32)
    report = product(kernels["product"], a, b, c)
    found = {(x.kind, x.buffer): (x.line, x.elements.tolist()) for x in report.accesses}
    assert found == {
        (Kind.OUT_OF_BOUNDS_READ, "a"): (
            line_of("load_matrix_sync(left, row"),
            list(range(31 * DEPTH, 32 * DEPTH)),
        ),
        (Kind.OUT_OF_BOUNDS_WRITE, "c"): (
            line_of("store_matrix_sync(tile"),
            list(range(31 * STRIDE + 20, 31 * STRIDE + 32)),
        ),
    }


@pytest.mark.parametrize(
    "instruction",
    [
        "wmma.load.a.sync.aligned.row.m32n8k16.f16 {%r, %r, %r, %r, %r, %r, %r, %r}, [%a]",
        "wmma.load.a.sync.aligned.row.m16n16k16.bf16 {%r, %r, %r, %r}, [%a]",
        "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 {%r}, {%r}, {%r}, {%r}",
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r, %r}, [%a]",
    ],
)
def test_other_fragments_are_refused_by_name(instruction: str) -> None:
    head = ".version 8.8\n.target sm_80\n.address_size 64\n"
    text = f"{head}.entry k(.param .u64 p) {{ .reg .b64 %a; .reg .b32 %r; {instruction}; ret; }}"
    with pytest.raises(UnsupportedError) as caught:
        prepare(parse(text).kernels["k"])
    assert instruction.split(" ")[0] in caught.value.message


@pytest.mark.compilers
def test_the_kept_ptx_is_what_nvrtc_writes() -> None:
    try:
        if not (cuda_headers()[0] / "crt" / "mma.h").is_file():
            pytest.skip("nvidia-cuda-crt is not installed")
        fresh = normalise(nvrtc(SOURCE.read_bytes(), SOURCE.name).ptx, SOURCE.name)
    except CompilerMissingError as error:
        pytest.skip(f"{error} is not installed")

    def products(text: str) -> list[str]:
        return [line.split()[0] for line in text.splitlines() if line.strip().startswith("wmma")]

    assert products(fresh) == products(KEPT.read_text())
