"""`run.uninitialised`: arrays that nobody has written, in the launches of a Python program."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from specrepro import emulate
from specrepro.repro.emulation.session import FindingsError
from specrepro.repro.errors import UsageError
from specrepro.repro.records import Kind

pytestmark = [pytest.mark.compilers, pytest.mark.usefixtures("triton")]


def copied(kernels: ModuleType, x: object, out: object, count: int) -> None:
    kernels.copy[(1,)](x, out, count)


def test_what_no_kernel_has_written_is_found_when_it_is_read(kernels: ModuleType) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    with emulate(raise_on_finding=False) as run:
        middle = run.uninitialised(np.empty(64, np.int32))
        copied(kernels, x, middle, 40)
        assert run.findings == []
        copied(kernels, middle, out, 64)
    assert [(f.kind, f.launch, f.tensor, f.elements) for f in run.findings] == [
        (Kind.UNINITIALISED_READ, 1, "x", (40, 63))
    ]
    assert out[:40].tolist() == list(range(40))
    assert set(out[40:].view(np.uint32)) == {0xAAAAAAAA}


def test_what_an_earlier_launch_wrote_is_written(kernels: ModuleType) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    with emulate() as run:
        middle = run.uninitialised(np.empty(64, np.int32))
        copied(kernels, x, middle, 64)
        copied(kernels, middle, out, 64)
    assert np.array_equal(out, x)


def test_what_the_program_itself_wrote_is_written(kernels: ModuleType) -> None:
    x, out = np.empty(64, np.int32), np.zeros(64, np.int32)
    with emulate() as run:
        run.uninitialised(x)
        x[:48] = np.arange(48)
        copied(kernels, x, out, 48)
        assert out[47] == 47
        with pytest.raises(FindingsError) as raised:
            copied(kernels, x, out, 64)
    assert [f.elements for f in raised.value.findings] == [(48, 63)]


def test_without_a_word_every_array_counts_as_written(kernels: ModuleType) -> None:
    with emulate():
        copied(kernels, np.empty(64, np.int32), np.zeros(64, np.int32), 64)


def test_views_of_one_array_know_of_each_other(kernels: ModuleType) -> None:
    whole, out = np.zeros(128, np.int32), np.zeros(64, np.int32)
    with emulate(raise_on_finding=False) as run:
        run.uninitialised(whole[:64])
        copied(kernels, np.ones(32, np.int32), whole[16:48], 32)
        copied(kernels, whole, out, 64)
        copied(kernels, whole[64:], out, 64)
    assert [f.elements for f in run.findings] == [(0, 15), (48, 63)]
    assert np.array_equal(whole[64:], np.zeros(64))


def test_the_check_can_be_left_out(kernels: ModuleType) -> None:
    with emulate(skip=["initialised"]) as run:
        x = run.uninitialised(np.empty(64, np.int32))
        copied(kernels, x, np.zeros(64, np.int32), 64)


def test_torch_tensors_can_be_uninitialised_too(kernels: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    out = torch.zeros(64, dtype=torch.int32)
    with emulate(raise_on_finding=False) as run:
        x = run.uninitialised(torch.empty(64, dtype=torch.int32))
        x[:60] = 3
        copied(kernels, x, out, 64)
    assert [f.elements for f in run.findings] == [(60, 63)]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((4, 8), np.int32)[:, :4], "gaps"),
        (np.broadcast_to(np.int32(1), (8,)), "cannot be written"),
        ([1, 2], "no tensor but list"),
    ],
)
def test_what_cannot_be_uninitialised_is_refused_and_left_alone(array: object, said: str) -> None:
    before = np.array(array)
    with emulate() as run, pytest.raises(UsageError, match=said):
        run.uninitialised(array)
    assert np.array_equal(before, np.array(array))


def test_what_empty_makes_is_unwritten_where_that_is_asked_for(kernels: ModuleType) -> None:
    out = np.zeros(64, np.int32)
    with emulate(raise_on_finding=False, empty=True) as run:
        made = np.empty(64, np.int32)
        made[:48] = np.arange(48)
        copied(kernels, made, out, 64)
    assert [(f.kind, f.elements) for f in run.findings] == [(Kind.UNINITIALISED_READ, (48, 63))]
    assert out[:48].tolist() == list(range(48))


def test_a_like_of_an_array_and_one_that_a_kernel_filled(kernels: ModuleType) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    with emulate(empty=True) as run:
        middle = np.empty_like(x)
        copied(kernels, x, middle, 64)
        copied(kernels, middle, out, 64)
        copied(kernels, np.full(64, -1431655766, np.int32), middle, 64)  # 0xAA in every byte
        copied(kernels, middle, out, 64)
    assert run.findings == []
    assert set(out) == {-1431655766}


def test_memory_that_another_array_got_since_counts_as_that_array(kernels: ModuleType) -> None:
    out = np.zeros(64, np.int32)
    with emulate(empty=True) as run:
        for _ in range(20):
            gone = np.empty(64, np.int32)
            address = gone.__array_interface__["data"][0]
            del gone
            again = np.zeros(64, np.int32)
            copied(kernels, again, out, 64)
            assert address > 0
    assert run.findings == []


def test_arrays_that_no_launch_takes_can_still_be_made(kernels: ModuleType) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    with emulate(empty=True) as run:
        assert np.empty(3, object).tolist() == [None, None, None]
        assert np.empty(0, np.int32).size == 0
        assert np.empty((2, 3), np.complex128).shape == (2, 3)
        copied(kernels, x, out, 64)
    assert run.findings == []
    assert np.empty.__module__ == "numpy"  # what was replaced is there again


def test_a_tensor_that_torch_made_empty_is_unwritten(kernels: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    out = torch.zeros(64, dtype=torch.int32)
    with emulate(raise_on_finding=False, empty=True) as run:
        made = torch.empty(64, dtype=torch.int32)
        made[:48] = torch.arange(48, dtype=torch.int32)
        copied(kernels, made, out, 64)
        copied(kernels, out.new_empty(64).fill_(3), out, 64)
    assert [(f.kind, f.elements) for f in run.findings] == [(Kind.UNINITIALISED_READ, (48, 63))]
    assert out.tolist() == [3] * 64
