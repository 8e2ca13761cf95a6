"""Kernels as the compilers write them: the texts kept in ptx/, and fresh ones where they can be.

`python tests/emulator/test_compiled_kernels.py` writes the texts anew.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.ops import Owners
from specrepro.repro.ptx_text import normalise
from specrepro.repro.records import Kind

Run = Callable[..., LaunchReport]
FOLDER = Path(__file__).parent / "ptx"
WARPS = 4
SIGNATURES = {
    "attention": {
        **dict.fromkeys(["query", "key", "value"], "*fp16"),
        "table": "*i32",
        "out": "*fp32",
        **dict.fromkeys(["length", "dim", "block_size"], "i32"),
        "scale": "fp32",
    },
    "draw": {"logits": "*fp32", "out": "*fp32", "best": "*i32", "n": "i32", "seed": "i32"},
}
CONSTANTS = {"attention": {"TILE": 16, "D": 16}, "draw": {"B": 256}}


def wheel_file(wheel: str, name: str) -> Path:
    for path in importlib.metadata.files(wheel) or []:
        if path.name == name:
            return Path(str(path.locate()))
    raise FileNotFoundError(f"{name} in {wheel}")


def compiled_cuda() -> str:
    """kernels.cu as NVRTC writes it."""
    library = ctypes.CDLL(str(wheel_file("nvidia-cuda-nvrtc", "libnvrtc.so.13")))
    headers = wheel_file("nvidia-cuda-runtime", "cuda_fp16.h").parent
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = (FOLDER / "kernels.cu").read_bytes()
    options = [b"-arch=compute_80", b"-lineinfo", b"-std=c++17", f"-I{headers}".encode()]
    array = (ctypes.c_char_p * len(options))(*options)
    library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    if library.nvrtcCompileProgram(program, len(options), array):
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise ValueError(log.value.decode())
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    return normalise(text.value.decode(), "kernels.cu")


def compiled_triton() -> dict[str, str]:
    """The kernels of attention.py as Triton writes them, one text each."""
    from triton import compile as compile_source
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location("emulator_attention", FOLDER / "attention.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    texts = {}
    for name, signature in SIGNATURES.items():
        constants = CONSTANTS[name]
        source = ASTSource(
            fn=getattr(module, name),
            signature={**signature, **dict.fromkeys(constants, "constexpr")},
            constexprs=constants,
            attrs={
                (n,): [["tt.divisibility", 16]]
                for n, kind in enumerate(signature.values())
                if kind[0] == "*"
            },
        )
        options = {"num_warps": WARPS, "num_stages": 1, "enable_fp_fusion": True}
        made = compile_source(source, target=GPUTarget("cuda", 80, 32), options=options)
        texts[name] = normalise(made.asm["ptx"], "attention.py")
    return texts


def all_compiled() -> dict[str, Kernel]:
    texts = [compiled_cuda(), *compiled_triton().values()]
    return {name: kernel for text in texts for name, kernel in parse(text).kernels.items()}


@pytest.fixture(scope="module", params=["kept", pytest.param("fresh", marks=pytest.mark.compilers)])
def kernels(request: pytest.FixtureRequest, fixtures: dict[str, Kernel]) -> dict[str, Kernel]:
    if request.param == "kept":
        return fixtures
    pytest.importorskip("triton", reason="Triton is not installed", exc_type=ImportError)
    try:
        importlib.metadata.version("nvidia-cuda-nvrtc")
        importlib.metadata.version("nvidia-cuda-runtime")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("NVRTC and the CUDA headers are not installed")
    return all_compiled()


def line_of(file: str, text: str) -> int:
    lines = (FOLDER / file).read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if text in line]
    return number


def test_scatter_writes_slots_and_names_the_overrun(kernels: dict[str, Kernel], run: Run) -> None:
    rng = np.random.default_rng(0)
    key = rng.integers(0, 65536, (4, 100)).astype(np.uint16)
    cache = np.zeros((6, 100), np.uint16)
    slots = np.array([4, -1, 6, 0])
    args = [Buffer("key", key.ravel()), Buffer("cache", cache.ravel()), Buffer("slots", slots)]
    report = run(kernels["scatter"], 4, 64, [*args, 100, 100])
    (access,) = report.accesses
    assert (access.kind, access.buffer) == (Kind.OUT_OF_BOUNDS_WRITE, "cache")
    assert access.elements.tolist() == list(range(600, 700))
    assert (access.block, access.threads, access.width) == ((2, 0, 0), 64, 2)
    assert access.file == "kernels.cu"
    assert access.line == line_of("kernels.cu", "cache[slot * stride + i] =")
    wanted = np.zeros_like(cache)
    wanted[4], wanted[0] = key[0], key[3]
    assert np.array_equal(cache, wanted)
    slots[2] = 5
    assert run(kernels["scatter"], 4, 64, [*args, 100, 100]).accesses == ()


def test_row_sum_reduces_by_shuffles_and_shared_memory(
    kernels: dict[str, Kernel], run: Run
) -> None:
    x = np.random.default_rng(1).normal(size=(5, 300)).astype(np.float32)
    out = np.zeros(5, np.float32)
    args = [Buffer("x", x.ravel()), Buffer("out", out), 300]
    assert run(kernels["row_sum"], 5, 128, args).accesses == ()
    np.testing.assert_allclose(out, (x.astype(np.float64) ** 2).sum(1), rtol=1e-6)
    (access,) = [
        a
        for a in run(kernels["row_sum"], 5, 160, args).accesses
        if a.line == line_of("kernels.cu", "part[threadIdx.x / 32] = sum")
    ]
    assert access.kind is Kind.SHARED_OUT_OF_BOUNDS
    assert access.elements.tolist() == [16, 17, 18, 19]
    assert access.threads == 5


def test_an_access_in_an_inlined_function_is_named_where_the_kernel_reads(
    kernels: dict[str, Kernel], run: Run
) -> None:
    x = np.zeros(299, np.float32)
    report = run(
        kernels["row_sum"], 1, 128, [Buffer("x", x), Buffer("out", np.zeros(1, np.float32)), 300]
    )
    (access,) = report.accesses
    assert access.elements.tolist() == [299]
    assert access.line == line_of("kernels.cu", "sum += square(x[")


def test_compaction_keeps_every_third_number_once(kernels: dict[str, Kernel], run: Run) -> None:
    given = np.arange(200, dtype=np.int32)
    out, count = np.full(80, -1, np.int32), np.zeros(1, np.int32)
    args = [Buffer("in", given), Buffer("out", out), Buffer("count", count), 200]
    assert run(kernels["compact"], 4, 64, args).accesses == ()
    assert count.tolist() == [67]
    assert sorted(out[:67].tolist()) == list(range(0, 200, 3))


def test_functions_of_the_cuda_library(kernels: dict[str, Kernel], run: Run) -> None:
    """Among them the Payne-Hanek reduction in local memory, if only for arguments that skip it."""
    x = np.array([0.001, 0.3, 1.0, 2.5, 30.0, 100.0], np.float32)
    wide = np.array([-700.0, -1.0, 0.0, 0.3, 5.0, 700.0])
    wanted = [math.exp(v) / 3 for v in wide.tolist()]
    out = np.zeros((6, 5), np.float32)
    args = [Buffer("x", x), Buffer("out", out.ravel()), Buffer("wide", wide), 6]
    report = run(kernels["functions"], 1, 32, args)
    assert report.accesses == ()
    for column, function in enumerate([math.exp, lambda v: v**1.5, math.log, math.sin, math.tanh]):
        exact = [function(v) if v < 88 or column else math.inf for v in x.tolist()]
        np.testing.assert_allclose(out[:, column], exact, rtol=4e-7)
    np.testing.assert_allclose(wide, wanted, rtol=1e-15)


def test_halves_are_fused_and_compared(kernels: dict[str, Kernel], run: Run) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=20).astype(np.float16) for _ in range(2))
    out = np.zeros(20, np.float16)
    args = [Buffer("x", x), Buffer("y", y), Buffer("out", out), 20]
    assert run(kernels["halves"], 1, 32, args).accesses == ()
    # Exact in float64 for numbers of this size.
    exact = x.astype(np.float64) * y.astype(np.float64) + np.maximum(x, y).astype(np.float64)
    assert np.array_equal(out, exact.astype(np.float16))


def paged(table: list[int], length: int) -> tuple[list[Any], np.ndarray[Any, Any], Any]:
    rng = np.random.default_rng(3)
    query = rng.normal(size=(3, 12)).astype(np.float16)
    key, value = (rng.normal(size=(64, 12)).astype(np.float16) for _ in range(2))
    out = np.zeros((3, 12), np.float32)
    args = [
        Buffer("query", query.ravel()),
        Buffer("key", key.ravel()),
        Buffer("value", value.ravel()),
        Buffer("table", np.array(table, np.int32)),
        Buffer("out", out.ravel()),
        length,
        12,
        16,
        0.3,
    ]

    def reference() -> np.ndarray[Any, Any]:
        slots = [table[n // 16] * 16 + n % 16 for n in range(length)]
        scores = query.astype(np.float64) @ key[slots].T.astype(np.float64) * 0.3
        weights = np.exp(scores - scores.max(1, keepdims=True))
        exact: np.ndarray[Any, Any] = weights @ value[slots].astype(np.float64)
        return exact / weights.sum(1, keepdims=True)

    return args, out, reference


@pytest.mark.parametrize("length", [1, 16, 37])
def test_attention_over_a_block_table(kernels: dict[str, Kernel], run: Run, length: int) -> None:
    args, out, reference = paged([2, 0, 3], length)
    assert run(kernels["attention"], 3, 32 * WARPS, args, shared_bytes=1024).accesses == ()
    np.testing.assert_allclose(out, reference(), atol=1e-6)


def test_a_bad_block_id_and_a_length_past_the_table_are_located(
    kernels: dict[str, Kernel], run: Run
) -> None:
    args, _, _ = paged([2, 4, 3], 49)
    report = run(kernels["attention"], 3, 32 * WARPS, args, shared_bytes=1024)
    found = {a.buffer: a for a in report.accesses}
    assert found.keys() == {"key", "value", "table"}
    assert found["table"].elements.tolist() == [3]
    assert found["table"].line == line_of("attention.py", "block = tl.load(table")
    assert found["key"].elements.tolist() == list(range(64 * 12, 80 * 12))
    assert found["key"].line == line_of("attention.py", "k = tl.load(key")
    assert found["value"].elements.tolist() == list(range(64 * 12, 80 * 12))
    assert {a.file for a in report.accesses} == {"attention.py"}


def test_another_requests_block_is_a_foreign_read(kernels: dict[str, Kernel], run: Run) -> None:
    args, _, _ = paged([2, 0, 3], 37)
    owners = Owners(16 * 12, np.array([7, 7, 7, 8], np.int32))
    args[1] = Buffer("key", args[1].data, owners)
    report = run(
        kernels["attention"],
        3,
        32 * WARPS,
        args,
        shared_bytes=1024,
        requests=np.array([7, -1, 8], np.int32),
    )
    by_request = {access.request: access for access in report.accesses}
    assert by_request.keys() == {7, 8}
    assert {access.kind for access in report.accesses} == {Kind.FOREIGN_READ}
    assert by_request[7].elements.tolist() == list(range(48 * 12, 53 * 12))
    assert by_request[7].lands_in == "request 8's unit 3 of key"
    assert by_request[8].elements.tolist() == list(range(16 * 12)) + list(range(32 * 12, 48 * 12))


def philox(seed: int, offset: int) -> int:
    """First word of Philox-4x32-10 (Salmon et al., 2011) with counter (offset, 0, 0, 0)."""
    counter, key = [offset, 0, 0, 0], [seed, 0]
    for _ in range(10):
        first, second = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [
            second >> 32 ^ counter[1] ^ key[0],
            second & 0xFFFFFFFF,
            first >> 32 ^ counter[3] ^ key[1],
            first & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter[0]


def test_philox_and_argmax(kernels: dict[str, Kernel], run: Run) -> None:
    logits = np.random.default_rng(4).normal(size=700).astype(np.float32)
    out, best = np.zeros(700, np.float32), np.zeros(3, np.int32)
    args = [Buffer("logits", logits), Buffer("out", out), Buffer("best", best), 700, 42]
    assert run(kernels["draw"], 3, 32 * WARPS, args, shared_bytes=64).accesses == ()
    assert best.tolist() == [int(logits[n : n + 256].argmax()) for n in (0, 256, 512)]
    for n in (0, 1, 255, 699):
        word = philox(42, n)
        number = word if word < 1 << 31 else (~word & 0xFFFFFFFF)
        assert out[n] == np.float32(number) * np.float32(4.6566127342e-10)


if __name__ == "__main__":
    (FOLDER / "kernels.ptx").write_text(compiled_cuda())
    for kernel_name, kernel_text in compiled_triton().items():
        (FOLDER / f"{kernel_name}.ptx").write_text(kernel_text)
