"""PTX for other targets: the shipped kernels do the same as compiled for sm_75 to sm_120."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specrepro.repro import compilation
from specrepro.repro.compiled import CompiledKernel
from specrepro.repro.emulator.launch import Buffer, launch, prepare
from specrepro.repro.emulator.ptx import parse
from specrepro.repro.errors import UnsupportedError

pytestmark = pytest.mark.compilers
KERNELS = Path(compilation.__file__).parents[1] / "kernels"
OPS = sorted(path.parent.name for path in KERNELS.glob("*/ptx"))
CUDA = [op for op in OPS if (KERNELS / op / "kernel.cu").exists()]
# Triton writes for sm_80 and later, NVRTC 13 for sm_75 and later.
CASES = [(op, target) for op in OPS for target in (90, 100, 120)] + [(op, 75) for op in CUDA]
COUNT = 1 << 14
SIZE, STRIDE = 4, 64  # rows do not overlap, or blocks would write over each other
DTYPES = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "b16": np.uint16}
HEADER = "\n.address_size 64\n.entry k(.param .u64 p) { .reg .b64 %a; .reg .b32 %r; "


def compiled(op: str, target: int) -> CompiledKernel:
    try:
        return compilation.compile_kernel(op, target=f"sm_{target}")
    except compilation.CompilerMissingError as error:
        pytest.skip(str(error))


def outcome(kernel: CompiledKernel) -> dict[str, Any]:
    """What a launch with small sizes leaves in buffers of random values."""
    rng = np.random.default_rng(0)
    buffers: dict[str, Any] = {}
    values: list[Any] = []
    for parameter in kernel.manifest.parameters:
        kind = parameter.type
        if kind.startswith("*"):
            name = kind.removeprefix("*")
            if name in ("fp16", "fp32", "fp64"):
                data: Any = rng.standard_normal(COUNT).astype(DTYPES[name])
            elif name == "b16":
                data = rng.integers(0x3800, 0x4000, COUNT).astype(np.uint16)
            else:
                bits = int("".join(filter(str.isdigit, name)) or 8)
                data = rng.integers(0, 3, COUNT).astype(f"i{max(8, bits) // 8}")
            buffers[parameter.name] = data
            values.append(Buffer(parameter.name, data))
        elif kind.startswith("fp"):
            values.append(0.5)
        elif kind.startswith(("i", "u")):
            values.append(STRIDE if "stride" in parameter.name else SIZE)
        else:
            values.append(None)
    (entry,) = parse(kernel.ptx).kernels.values()
    manifest = kernel.manifest
    launch(entry, (2, 2, 1), manifest.threads, values, shared_bytes=manifest.shared_bytes)
    return buffers


@pytest.mark.parametrize(("op", "target"), CASES)
def test_a_shipped_kernel_does_the_same_for_every_target(op: str, target: int) -> None:
    other = compiled(op, target)
    assert f".target sm_{target}" in other.ptx
    usual = compiled(op, 80)
    found, wanted = outcome(other), outcome(usual)
    for name, values in wanted.items():
        assert np.allclose(found[name], values, rtol=1e-3, atol=1e-3, equal_nan=True), name


@pytest.mark.parametrize("target", ["sm_70", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize(
    "instruction",
    [
        "wgmma.fence.sync.aligned",
        "tcgen05.wait::ld.sync.aligned",
        "cp.async.bulk.wait_group 0",
        "mbarrier.init.shared.b64 [%r], 1",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile [%r], [%a, {%r, %r}], [%r]",
    ],
)
def test_what_only_newer_devices_have_is_refused_by_name(instruction: str, target: str) -> None:
    text = f".version 9.0\n.target {target}{HEADER}{instruction}; ret; }}"
    kernel = parse(text).kernels["k"]
    with pytest.raises(UnsupportedError) as caught:
        prepare(kernel)
    assert instruction.split(" ")[0] in caught.value.message
