"""Triton's own launch executes the shipped program: compiled here by Triton's whole path from
`kernel[grid](…)` on, for a device that has none and keeps the launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specrepro.repro.compilation import compiler_version, source_module
from specrepro.repro.compiled import DTYPES, PACKAGE, SCRATCH, Manifest, load
from specrepro.repro.errors import KernelError
from specrepro.repro.lanes.triton_launch import annotated, options
from specrepro.repro.ptx_text import normalise

OPS = sorted(path.parent.name for path in (PACKAGE / "kernels").glob("*/kernel.py"))
pytestmark = pytest.mark.compilers


def arguments(manifest: Manifest, number: int, null: bool) -> list[Any]:
    values: list[Any] = []
    for one in manifest.parameters:
        if one.type == SCRATCH:
            continue
        if not one.pointer:
            values.append(float(number) if one.type == "fp32" else number)
        elif null and one.nullable:
            values.append(None)
        else:
            raw = np.zeros(64, np.int64)
            at = -raw.ctypes.data % 16 // 8
            values.append(raw[at : at + 32].view(DTYPES[one.type[1:]]))
    return values


def kernel_of(op: str) -> tuple[Any, Any, Manifest]:
    manifest = load(op).manifest
    module = source_module(PACKAGE / manifest.source, f"launched_{op}")
    return annotated(getattr(module, op), module.SIGNATURE, manifest.source), module, manifest


@pytest.mark.parametrize("op", OPS)
def test_the_program_is_the_shipped_one_whatever_the_numbers(op: str) -> None:
    from specrepro.repro.emulation.triton_device import installed

    kernel, module, manifest = kernel_of(op)
    if compiler_version("triton") != manifest.compiler_version:
        pytest.skip(f"shipped by Triton {manifest.compiler_version}")
    launched: list[Any] = []
    with installed(launched.append):
        for number in (1, 16, 7):
            given = arguments(manifest, number, null=False)
            kernel.warmup(*given, grid=(2, 1, 1), **options(module))
            assert not launched
        kernel[2, 1, 1](*given, **options(module))
        assert len(kernel.device_caches[-1][0]) == 1  # one program for all numbers
    (one,) = launched
    assert one.grid == (2, 1, 1)
    assert normalise(one.ptx, manifest.source) == load(op).ptx
    names = [name for name, _, _ in one.arguments]
    assert names == list(manifest.arguments)
    assert [kind for _, kind, _ in one.arguments] == [
        p.type for p in manifest.parameters if p.type != SCRATCH
    ]


@pytest.mark.parametrize(
    "op", [op for op in OPS if any(p.nullable for p in load(op).manifest.parameters)]
)
def test_a_null_pointer_is_an_argument_like_others(op: str) -> None:
    from specrepro.repro.emulation.triton_device import installed

    kernel, module, manifest = kernel_of(op)
    launched: list[Any] = []
    with installed(launched.append):
        kernel[1, 1, 1](*arguments(manifest, 1, null=True), **options(module))
    values = {name: value for name, _, value in launched[0].arguments}
    assert list(values) == list(manifest.arguments)
    assert all(values[p.name] is None for p in manifest.parameters if p.nullable)


def test_a_kernel_that_is_tuned_by_launching_it_is_refused() -> None:
    import triton

    _, module, manifest = kernel_of("slot_mapping")
    tuned = triton.autotune([triton.Config({})], key=[])(module.slot_mapping)
    with pytest.raises(KernelError, match="Triton would launch it to tune it"):
        annotated(tuned, module.SIGNATURE, manifest.source)
