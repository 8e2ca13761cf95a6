"""`emulate` in Python, and Triton files on the command line: real outputs, located findings."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from specrepro import emulate
from specrepro.repro.emulation.session import FindingsError
from specrepro.repro.errors import UnsupportedError, UsageError
from specrepro.repro.records import Kind

pytestmark = [pytest.mark.compilers, pytest.mark.usefixtures("triton")]

KERNELS = (Path(__file__).parent / "triton_kernels.py").read_text(encoding="utf-8")


def line_of(text: str) -> int:
    return KERNELS.split("\n").index(next(s for s in KERNELS.split("\n") if text in s)) + 1


def test_outputs_are_those_of_numpy_with_defaults_keywords_and_called_functions(
    kernels: ModuleType,
) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    first, second = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    with emulate() as run:
        kernels.add[(8,)](x, y, first, 1000)
        kernels.add[lambda meta: (-(-1000 // meta["B"]), 1)](
            first, y, out=second, n=1000, by=np.float32(0.25), B=256, num_warps=8
        )
    assert np.array_equal(first, x + 1)
    assert np.array_equal(second, (x + 1) / 2 + 1)
    assert [(one.kernel, one.grid, one.threads, one.found) for one in run.launches] == [
        ("add", (8, 1, 1), 128, 0),
        ("add", (4, 1, 1), 256, 0),
    ]
    assert run.findings == []


def test_a_finding_is_raised_with_place_thread_and_element(kernels: ModuleType) -> None:
    x, out = np.ones(1000, np.float32), np.zeros(1001, np.float32)
    with pytest.raises(FindingsError) as error, emulate():
        kernels.add[(8,)](x, x, out, 1001)
    text = str(error.value)
    line = line_of("value = scaled")
    assert "read of 4 bytes at element 1000 of x float32[1000], first byte past its end at " in text
    assert f"triton_kernels.py:{line} in add, by block (7, 0, 0), thread (104, 0, 0)" in text
    assert out[999] == 2.0
    assert {one.kind for one in error.value.findings} == {"out_of_bounds_read"}


def test_findings_are_collected_launch_by_launch(kernels: ModuleType) -> None:
    x, out = np.ones(100, np.int32), np.zeros(100, np.int32)
    with emulate(raise_on_finding=False) as run:
        kernels.copy[lambda meta: (-(-100 // meta["B"]),)](x, out, 100)
        kernels.copy[lambda meta: (-(-128 // meta["B"]),)](x, out, 128)
    assert [(one.threads, one.found) for one in run.launches] == [(64, 0), (64, 2)]
    assert {(f.launch, f.tensor, f.elements) for f in run.findings} == {
        (1, "x", (100, 127)),
        (1, "out", (100, 127)),
    }
    assert len(run.report().splitlines()) == 2


def test_a_pointer_may_touch_its_view_and_nothing_around_it(kernels: ModuleType) -> None:
    storage = np.arange(6 * 32, dtype=np.float32).reshape(6, 32)
    view, out = storage[1:4, :16], np.zeros(3, np.float32)
    with emulate() as run:
        kernels.rows[(3,)](view, out, 32, 16, B=16)
    assert np.array_equal(out, view.sum(1))
    with emulate(raise_on_finding=False) as run:
        kernels.rows[(4,)](view, np.zeros(4, np.float32), 32, 16, B=16)
    assert [f.elements for f in run.findings] == [(96, 111)]


def test_an_overrun_into_another_array_of_the_allocation_is_named(kernels: ModuleType) -> None:
    both = np.zeros(64, np.int32)
    with emulate(raise_on_finding=False) as run:
        kernels.copy[(1,)](both[:32], both[32:], 64)
    assert {(f.tensor, f.lands_in) for f in run.findings} == {
        ("x", "out[0]"),
        ("out", "unmapped memory"),
    }


def test_arrays_that_cannot_be_written_are_read_but_not_written(kernels: ModuleType) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    x.flags.writeable = False
    with emulate():
        kernels.copy[(1,)](x, out, 64)
        assert np.array_equal(out, x)
        with pytest.raises(UsageError, match="read-only"):
            kernels.copy[(1,)](out + 1, x, 64)
    assert x[1] == 1


def test_numbers_are_specialised_as_triton_does_and_mean_the_same(kernels: ModuleType) -> None:
    out = np.zeros(1, np.int64)
    numbers = [1, 2, 16, 48, -7, 2**31, 2**40]
    with emulate():
        for number in numbers:
            kernels.count[(3,)](out, number)
        kernels.count[(0,)](out, 5)
    assert out[0] == 3 * sum(numbers)


def test_afterwards_triton_is_as_it_was(kernels: ModuleType) -> None:
    import triton
    from triton import knobs
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    def state() -> list[Any]:
        active = triton.runtime.driver._active
        hook = knobs.runtime.add_stages_inspection_hook
        return [active, hook, knobs.cache.dir, JITFunction.run, Autotuner.run]

    before = state()
    during = []
    with pytest.raises(FindingsError), emulate() as run:  # noqa: PT012 - what is left open
        during = state()
        kernels.copy[(2,)](np.zeros(64, np.int32), np.zeros(128, np.int32), 128)
    assert all(a is not b for a, b in zip(before, during, strict=True))
    assert state() == before
    assert len(run.launches) == 1


def test_arrays_in_a_tuple_reach_a_kernel(kernels: ModuleType) -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    with emulate():
        kernels.summed[(1,)]((x, x[::-1].copy(), 5), out, B=16)
    assert out.tolist() == [20] * 16


def test_a_descriptor_of_a_torch_tensor_reaches_a_kernel(kernels: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    from triton.tools.tensor_descriptor import TensorDescriptor

    square, corner = torch.arange(640.0).reshape(40, 16), torch.zeros(16, 16)
    with emulate():
        kernels.tile[(1,)](TensorDescriptor.from_tensor(square, [16, 16]), corner, B=16)
    assert torch.equal(corner, square[16:32])


def test_a_failed_assertion_is_a_finding_with_its_words(kernels: ModuleType) -> None:
    with emulate(raise_on_finding=False) as run:
        kernels.checked[(1,)](np.arange(8, dtype=np.int32), B=8, debug=True, num_warps=1)
    [finding] = run.findings
    assert finding.kind is Kind.TRAP
    assert "too large" in str(finding.got)
    assert f"triton_kernels.py:{line_of('tl.device_assert')} in checked" in run.report()


def test_a_check_can_be_left_out(kernels: ModuleType) -> None:
    with emulate(skip=["alignment", "global_race"]) as run:
        kernels.count[(2,)](np.zeros(1, np.int64), 1)
    assert "alignment" not in run.checks
    with pytest.raises(UsageError, match="no check is named spelling"), emulate(skip=["spelling"]):
        pass


def test_a_list_is_no_tensor(kernels: ModuleType) -> None:
    with emulate(), pytest.raises(UsageError, match="argument out is no tensor"):
        kernels.count[(1,)](Address(), 1)


class Address:
    """Has an address and a dtype, and no memory that is known."""

    dtype = "int64"

    def data_ptr(self) -> int:
        return 4096


def test_torch_tensors_are_written_in_place_whatever_their_type(kernels: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    with emulate(raise_on_finding=False) as run:
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64):
            x, out = torch.arange(100).to(dtype), torch.zeros(100, dtype=dtype)
            kernels.copy[lambda meta: (-(-100 // meta["B"]),)](x, out, 100)
            assert torch.equal(x, out)
        cache = torch.zeros(2, 64)
        kernels.copy[(2,)](cache[0], torch.zeros(128), 128)
        kernels.copy[(2,)](cache[0], cache[1], 128)
    assert {(f.launch, f.tensor, f.lands_in) for f in run.findings} == {
        (4, "x", "unmapped memory"),
        (5, "x", "out[0]"),
        (5, "out", "unmapped memory"),
    }
    with emulate(), pytest.raises(UsageError, match="lies on meta"):
        kernels.count[(1,)](torch.zeros(1, dtype=torch.int64, device="meta"), 2)


def test_copies_of_a_sum_that_differ_in_the_last_bits_are_a_warning_with_its_cause(
    kernels: ModuleType,
) -> None:
    random = np.random.default_rng(1)
    x, weights = (random.normal(size=s).astype(np.float32) for s in ((16, 32), 16))
    told = {}
    for fusion in (True, False):
        out = np.zeros(32, np.float32)
        with emulate() as run:
            kernels.weighted[(1,)](x, weights, out, 16, 32, enable_fp_fusion=fusion)
        assert np.allclose(out, weights @ x, atol=1e-6)
        told[fusion] = run.warnings
    assert told[False] == []
    [warned] = told[True]
    assert warned.source is not None
    assert warned.source.line == line_of("tl.load(weights + t)")
    assert "copies of one number differ" in warned.text
    assert "TRITON_DEFAULT_FP_FUSION=0" in warned.text


def test_a_type_that_sm_80_has_not_is_compiled_for_a_newer_one(kernels: ModuleType) -> None:
    # Of e4m3: 3 bits behind the point, ties to even, 2**-9 the least above 0.
    x = np.array([0.3, 17, 19, 300, -1.0625, 448, 2**-9, 2**-11], np.float32)
    out, other = np.zeros(8, np.float32), np.zeros(8, np.float32)
    with emulate() as run:
        kernels.narrowed[(1,)](x, out, 8)
        kernels.add[(1,)](x, x, other, 8)
        kernels.narrowed[(1,)](out, other, 8)
    rounded = [0.3125, 16, 20, 288, -1, 448, 2**-9, 0]
    assert (out.tolist(), other.tolist()) == (rounded, rounded)
    assert [one.kernel for one in run.launches] == ["narrowed", "add", "narrowed"]


def test_what_lies_behind_addresses_of_the_program_is_refused_and_no_finding(
    kernels: ModuleType,
) -> None:
    row, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    table = np.array([row.ctypes.data], np.int64)
    with emulate() as run, pytest.raises(UnsupportedError, match="table holds addresses") as error:
        kernels.behind[(1,)](table, out, 32)
    assert error.value.where.endswith(f"triton_kernels.py:{line_of('tl.load(row + i)')}")
    assert (run.findings, run.launches[0].found) == ([], 0)
    assert "table holds addresses" in run.launches[0].refused
    with emulate(raise_on_finding=False) as run:  # a wild address that no table explains
        kernels.behind[(1,)](np.array([12345], np.int64), out, 32)
    assert [one.kind for one in run.findings] == [Kind.OUT_OF_BOUNDS_READ]


def test_a_view_is_named_with_its_strides_and_elements_count_by_address(
    kernels: ModuleType,
) -> None:
    x = np.ones((10, 16), np.float32)[2:8, ::2]  # from its first to its last element 5 * 16 + 15
    with pytest.raises(FindingsError) as error, emulate():
        kernels.add[(1,)](x, np.ones(96, np.float32), np.zeros(96, np.float32), 96)
    [finding] = error.value.findings
    assert finding.elements == (95, 95)
    assert "at element 95 of x float32[6, 8] of strides (16, 2), first byte past" in str(
        error.value
    )
