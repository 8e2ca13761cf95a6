"""Texts of compilers: those kept in ptx/, and fresh ones where the compilers are.

`python tests/emulator/coverage/conftest.py` writes the kept ones anew.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from specrepro.repro.emulator.ptx import Kernel, parse
from specrepro.repro.ptx_text import normalise

FOLDER = Path(__file__).parent / "ptx"
SIZES = {"M": 32, "N": 32, "K": 32}
SHARED = 48 << 10  # bytes that a product has at most


class Product(NamedTuple):
    """One way to multiply: the function of products.py, types of operands and result."""

    function: str
    operand: str
    result: str


PRODUCTS = {
    "f16": Product("product", "fp16", "fp32"),
    "bf16": Product("product", "bf16", "fp32"),
    "tf32": Product("product", "fp32", "fp32"),
    "s8": Product("whole", "i8", "i32"),
    "f64": Product("whole", "fp64", "fp64"),
    "e4m3": Product("whole", "fp8e4nv", "fp32"),
}
KEPT = ("f16", "bf16", "tf32", "s8", "f64")


def compiled_product(name: str, arch: int) -> str:
    """A product as Triton writes it for sm_<arch>."""
    from triton import compile as compile_source
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location("coverage_products", FOLDER / "products.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    what = PRODUCTS[name]
    types = {"a": f"*{what.operand}", "b": f"*{what.operand}", "c": f"*{what.result}"}
    if what.function == "product":
        types |= dict.fromkeys(["m", "n", "k"], "i32")
    source = ASTSource(
        fn=getattr(module, what.function),
        signature={**types, **dict.fromkeys(SIZES, "constexpr")},
        constexprs=SIZES,
        attrs={(n,): [["tt.divisibility", 16]] for n in range(3)},
    )
    options = {"num_warps": 4, "num_stages": 3, "enable_fp_fusion": True}
    made = compile_source(source, target=GPUTarget("cuda", arch, 32), options=options)
    assert made.metadata.shared <= SHARED
    return normalise(made.asm["ptx"], "products.py")


def compiled_calls() -> str:
    """calls.cu as NVRTC writes it."""
    from specrepro.repro.compilation import nvrtc

    return normalise(nvrtc((FOLDER / "calls.cu").read_bytes(), "calls.cu").ptx, "calls.cu")


def have(*packages: str) -> bool:
    try:
        return all(importlib.metadata.version(package) for package in packages)
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="session")
def fresh_product() -> Callable[[str, int], Kernel]:
    """fresh_product(name, arch), compiled now."""
    if not have("triton"):
        pytest.skip("Triton is not installed")

    def make(name: str, arch: int) -> Kernel:
        (kernel,) = parse(compiled_product(name, arch)).kernels.values()
        return kernel

    return make


@pytest.fixture(scope="session")
def kept_product() -> Callable[[str], Kernel]:
    def read(name: str) -> Kernel:
        (kernel,) = parse((FOLDER / f"product_{name}.ptx").read_text()).kernels.values()
        return kernel

    return read


@pytest.fixture(params=["kept", pytest.param("fresh", marks=pytest.mark.compilers)])
def calls(request: pytest.FixtureRequest) -> dict[str, Kernel]:
    """The kernels of calls.cu, of a module of their own: what they write to it is new each time."""
    if request.param == "kept":
        return dict(parse((FOLDER / "calls.ptx").read_text()).kernels)
    if not have("nvidia-cuda-nvrtc", "nvidia-cuda-runtime"):
        pytest.skip("NVRTC and the CUDA headers are not installed")
    return dict(parse(compiled_calls()).kernels)


def write() -> Any:
    (FOLDER / "calls.ptx").write_text(compiled_calls())
    for name in KEPT:
        (FOLDER / f"product_{name}.ptx").write_text(compiled_product(name, 80))


if __name__ == "__main__":
    write()
