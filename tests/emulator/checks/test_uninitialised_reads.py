"""Loads of bytes that nobody wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.launch import Buffer, LaunchReport
from specrepro.repro.records import Kind

Run = Callable[..., LaunchReport]
Floats = Callable[..., Buffer]
# Bytes that are read before anybody wrote them, and how many threads of the two blocks do so.
SHARED = {
    "half_filled": ("read", range(96 * 4, 128 * 4), 2 * 32),
    "halo": ("read", [*range(4), *range(129 * 4, 130 * 4)], 2 * 2),
    "count": ("update", range(4), 2 * 128),
}


def written(count: int, size: int) -> np.ndarray[Any, Any]:
    """The marks of a buffer of `size` bytes of which the first `count` were written."""
    marks = np.zeros(size, np.bool_)
    marks[:count] = True
    return marks


@pytest.mark.parametrize("name", SHARED)
def test_shared_memory_starts_uninitialised(name: str, run_cuda: Run, marks: Any) -> None:
    what, offsets, threads = SHARED[name]
    (found,) = run_cuda(f"{name}_bad").accesses
    assert found.kind is Kind.UNINITIALISED_READ
    assert found.line == marks[f"{name} {what}"]
    assert found.elements.tolist() == list(offsets)
    assert (found.threads, found.lands_in) == (threads, "shared memory")
    assert run_cuda(f"{name}_ok").accesses == ()


def test_local_memory_starts_uninitialised(run_cuda: Run, marks: Any) -> None:
    """local_table writes places 0, 5, 2 and 7 of 8, and reads place 7 i & 7."""
    (found,) = run_cuda("local_table_bad").accesses
    assert (found.kind, found.line) == (Kind.UNINITIALISED_READ, marks["local_table read"])
    places = sorted({int(e) // 4 for e in found.elements})
    assert places == [1, 3, 4, 6]
    assert (found.threads, found.lands_in) == (256 // 2, "local memory")
    assert run_cuda("local_table_ok").accesses == ()


def test_a_buffer_says_which_bytes_were_written_and_stores_add_to_them(
    run_cuda: Run, marks: Any
) -> None:
    known = written(0, 1024)
    (found,) = run_cuda("gap_bad", written=known).accesses
    assert (found.kind, found.buffer, found.line) == (
        Kind.UNINITIALISED_READ,
        "out",
        marks["gap read"],
    )
    assert found.elements.tolist() == list(range(1, 256, 2))
    assert known.reshape(-1, 4).all(axis=1).tolist() == [i % 2 == 0 for i in range(256)]
    assert run_cuda("gap_ok", written=written(0, 1024)).accesses == ()


def test_a_copy_takes_the_marks_along_and_only_a_load_is_found(run_cuda: Run, marks: Any) -> None:
    """carried copies out to shared memory and loads a quarter of that."""
    (found,) = run_cuda("carried_bad", written=written(0, 1024)).accesses
    assert (found.kind, found.line) == (Kind.UNINITIALISED_READ, marks["carried read"])
    assert found.elements.tolist() == list(range(128))
    assert (found.lands_in, found.threads) == ("shared memory", 64)
    assert run_cuda("carried_ok", written=written(0, 1024)).accesses == ()


def test_what_an_earlier_launch_wrote_is_initialised(run_cuda: Run) -> None:
    known = written(0, 1024)
    run_cuda("gap_ok", written=known)
    assert run_cuda("gap_bad", written=known).accesses == ()


def test_one_byte_that_nobody_wrote_makes_its_element_uninitialised(run_cuda: Run) -> None:
    known = written(1024, 1024)
    known[[4 * 1 + 2, 4 * 5]] = False
    (found,) = run_cuda("gap_bad", written=known).accesses
    assert found.elements.tolist() == [1, 5]


def test_without_marks_a_buffer_counts_as_written(run_cuda: Run) -> None:
    assert run_cuda("gap_bad").accesses == ()


# program, n, buffer with marks, elements written before, elements found
TRITON = [
    ("row_tail", 200, "x", 200, range(200, 256)),
    ("row_tail", 256, "x", 128, range(128, 256)),
    ("total", 0, "x", 250, range(250, 256)),
    ("normalised", 0, "x", 255, [255]),
    ("accumulate", 200, "out", 0, range(200)),
    ("accumulate", 200, "out", 150, range(150, 200)),
    ("counted", 200, "out", 0, range(4)),
    ("counted", 200, "out", 3, [3]),
]
CLEAN = [
    ("row_tail", 200, "x", 256),
    ("row_masked", 200, "x", 200),
    ("row_masked", 1, "x", 1),
    ("total", 0, "x", 256),
    ("normalised", 0, "x", 256),
    ("accumulate", 200, "out", 200),
    ("counted", 200, "out", 4),
    ("row_masked", 200, "out", 0),
    ("running", 0, "out", 0),
]


@pytest.mark.parametrize(("name", "n", "which", "count", "found"), TRITON)
def test_a_triton_program_that_reads_what_nobody_wrote(
    name: str, n: int, which: str, count: int, found: Any, run_triton: Run, floats: Floats
) -> None:
    buffer = floats(which, 1, initialised=written(4 * count, 4096))
    (access,) = run_triton(name, n, **{which: buffer}).accesses
    assert (access.kind, access.buffer) == (Kind.UNINITIALISED_READ, which)
    assert access.elements.tolist() == list(found)
    assert access.lands_in == f"{which}[{next(iter(found))}]"


@pytest.mark.parametrize(("name", "n", "which", "count"), CLEAN)
def test_a_triton_program_that_reads_only_what_was_written(
    name: str, n: int, which: str, count: int, run_triton: Run, floats: Floats
) -> None:
    buffer = floats(which, 1, initialised=written(4 * count, 4096))
    assert run_triton(name, n, **{which: buffer}).accesses == ()


def test_the_read_is_executed(run_triton: Run, floats: Floats) -> None:
    x, out = floats("x", 1, initialised=written(0, 4096)), floats("out", 2)
    run_triton("row_tail", 200, x=x, out=out)
    assert out.data[:200].tolist() == (x.data[:200] * 2).tolist()
