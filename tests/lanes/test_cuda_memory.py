"""Where tensors lie: each apart, or one behind the other; over a driver made up."""

from __future__ import annotations

import gc
import io
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from specrepro.repro import compiled
from specrepro.repro.lanes.cuda_device import CudaDevice
from specrepro.repro.lanes.cuda_driver import CudaError, Driver
from specrepro.repro.lanes.cuda_memory import BLOCK, NEIGHBOUR, Apart, Arena
from specrepro.repro.ops import Ops
from specrepro.repro.sanitizer.journal import Writer, parse

GIB = 1 << 30


def made(placement: str) -> tuple[CudaDevice, io.StringIO]:
    text = io.StringIO()
    device = CudaDevice(
        Driver(), GIB, Writer(text), placement=placement, kernels=lambda op, _: compiled.load(op)
    )
    return device, text


def overrun(device: CudaDevice, into: int) -> tuple[Any, Any]:
    """Write slot `into` of a cache that has 32; the cache, and the tensor made next."""
    ops = Ops(device)
    shape = (32, 1, 8)  # 512 bytes
    cache = device.tensor("key_cache", np.zeros(shape, np.float16))
    behind = device.tensor("value_cache", np.zeros(shape, np.float16))
    key = device.tensor("key", np.ones((1, 1, 8), np.float16))
    value = device.tensor("value", np.full((1, 1, 8), 2, np.float16))
    slots = device.tensor("slots", np.array([into]))
    ops.kv_write(key, value, cache, cache, slots)
    return cache, behind


@pytest.mark.usefixtures("card")
def test_behind_a_tensor_of_its_own_range_the_first_byte_faults() -> None:
    device, _ = made("unmapped")
    cache, _ = overrun(device, 31)
    assert device.read(cache)[31].tolist() == [[2.0] * 8]
    overrun(device, 32)
    with pytest.raises(CudaError, match="700"):
        device.wait()


PAGE = 2 << 20  # what the made-up driver answers, as the devices of today do


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize(
    ("size", "pages", "slack"),
    [(1, 1, 15), (16, 1, 0), (500, 1, 12), (PAGE, 1, 0), (PAGE + 1, 2, 15), (5 * PAGE - 8, 5, 8)],
)
def test_a_tensor_of_its_own_takes_whole_pages_and_ends_less_than_16_bytes_before_their_end(
    size: int, pages: int, slack: int
) -> None:
    piece = Apart(Driver()).piece(size)
    held = piece.pages
    assert held is not None
    assert held.size == pages * PAGE
    assert piece.address % 16 == 0
    assert held.address + held.size - (piece.address + size) == slack
    # 16 GiB of addresses on both sides, in which nothing else is mapped
    assert held.width == held.size + (32 << 30)
    assert piece.reach == (held.reserved, held.reserved + held.width - 1)
    assert held.address - held.reserved == 16 << 30


def test_in_the_arena_tensors_take_their_sizes_in_blocks_and_pages_when_they_are_full(
    card: Any,
) -> None:
    arena = Arena(Driver())
    first = arena.piece(1).address
    sizes = (500, 512, 513, PAGE - 2560)
    assert [arena.piece(size).address - first for size in sizes] == [512, 1024, 1536, 2560]
    assert card.library.fake_mapped() == 1
    assert arena.piece(1).address == first + PAGE
    assert card.library.fake_mapped() == 2


@pytest.mark.usefixtures("card")
def test_in_the_arena_an_overrun_lands_in_the_tensor_made_next_and_does_not_fault() -> None:
    device, text = made(NEIGHBOUR)
    cache, behind = overrun(device, 33)
    assert not device.read(cache).any()
    assert device.read(behind)[1].tolist() == [[2.0] * 8]
    assert not device.read(behind)[[0, 2]].any()
    placed = parse(text.getvalue().encode()).placed
    assert [one.name for one in placed] == ["key_cache", "value_cache", "key", "value", "slots"]
    sizes = [after.address - one.address for one, after in pairwise(placed)]
    assert sizes == [BLOCK] * 4
    assert all(one.reach == (one.address, one.address + BLOCK - 1) for one in placed)


def test_the_arena_grows_page_by_page_and_keeps_what_it_gave(card: Any) -> None:
    device, text = made(NEIGHBOUR)
    assert card.library.fake_mapped() == 0
    large = device.tensor("a", np.arange(3 << 18, dtype=np.int64))  # 6 MiB
    small = device.tensor("b", np.arange(5))
    assert device.read(large)[-1] == (3 << 18) - 1
    assert device.read(small).tolist() == [0, 1, 2, 3, 4]
    del large, small
    gc.collect()
    device.wait()
    assert card.library.fake_mapped() == 2
    again = device.tensor("c", np.arange(5))
    device.wait()
    places = [one.address for one in parse(text.getvalue().encode()).placed]
    assert places == sorted(places)
    assert again.shape == (5,)


@pytest.mark.usefixtures("card")
def test_what_is_copied_is_what_the_host_held_when_it_asked() -> None:
    device, _ = made("")
    tensor = device.tensor("x", np.zeros(4, np.int32))
    values = np.array([1, 2, 3, 4], np.int32)
    device.write(tensor, values)
    values[:] = 9  # the copy has not been waited for
    assert device.read(tensor).tolist() == [1, 2, 3, 4]
