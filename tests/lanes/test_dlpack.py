"""Memory as a DLPack capsule: read by numpy, which has a reader of its own."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from specrepro.repro.lanes import dlpack


@dataclass
class Given:
    """What a consumer asks for a capsule."""

    capsule: Any

    def __dlpack__(self, **_: object) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU, 0


@pytest.mark.parametrize("name", ["float16", "float32", "int32", "int64", "uint16"])
def test_a_consumer_sees_the_very_memory_with_its_type(name: str) -> None:
    memory = np.arange(40).astype(name)
    where = memory.ctypes.data + 8 * memory.itemsize
    managed = dlpack.managed(where, 7, memory.dtype, (dlpack.CPU, 0))
    gc.collect()
    seen = np.from_dlpack(Given(dlpack.capsule(managed)))
    assert (seen.dtype, seen.tolist()) == (memory.dtype, [8, 9, 10, 11, 12, 13, 14])
    memory[9] = 77
    assert seen[1] == 77
    assert seen.ctypes.data == where


def test_a_type_without_a_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no form in DLPack"):
        dlpack.managed(0, 1, np.dtype("U3"), (dlpack.CPU, 0))


def test_torch_itself_takes_it_as_it_lies() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    memory = np.arange(5, dtype=np.float16)
    managed = dlpack.managed(memory.ctypes.data, 5, memory.dtype, (dlpack.CPU, 0))
    tensor = torch.utils.dlpack.from_dlpack(dlpack.capsule(managed))
    assert (tensor.data_ptr(), tensor.dtype) == (memory.ctypes.data, torch.float16)
    tensor[2] = 9
    assert memory[2] == 9
