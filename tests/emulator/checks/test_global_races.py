"""Blocks that touch the same elements of a buffer: warnings with both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator import launch as launching
from specrepro.repro.emulator.launch import Buffer, LaunchReport

Run = Callable[..., LaunchReport]
# For each: buffer, elements, whether all write the same, what each side does.
CUDA = {
    "tail": ("out", range(128), False, [("write", "write")]),
    "flag": ("out", [0], True, [("write", "write")]),
    "neighbour": ("in", [0, 128], False, [("write", "read")]),
    "total": ("out", [0], False, [("write", "read"), ("write", "write")]),
    "reset": ("out", [0], False, [("write", "update")]),
}
DOES = {"update": "atomic"}


@pytest.fixture(params=["one batch", "a block a batch"])
def batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "one batch":
        monkeypatch.setattr(launching, "LANES", 1)


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize("name", CUDA)
def test_blocks_that_race_are_warned_of(name: str, run_cuda: Run, marks: Any) -> None:
    buffer, elements, benign, sides = CUDA[name]
    report = run_cuda(f"{name}_bad")
    assert report.accesses == ()
    assert {w.buffer for w in report.warnings} == {buffer}
    assert {tuple(w.elements.tolist()) for w in report.warnings} == {tuple(elements)}
    assert {w.benign for w in report.warnings} == {benign}
    found = sorted((w.access, w.other.access) for w in report.warnings)
    assert found == [(DOES.get(a, a), DOES.get(b, b)) for a, b in sides]
    for warning in report.warnings:
        assert warning.line == marks[f"{name} write"]
        assert {warning.block[0], warning.other.block[0]} == {0, 1}
    if name in ("neighbour", "reset"):
        assert report.warnings[0].other.line == marks[f"{name} {sides[0][1]}"]


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize("name", CUDA)
def test_blocks_that_keep_to_themselves_or_are_atomic_are_not(name: str, run_cuda: Run) -> None:
    report = run_cuda(f"{name}_ok")
    assert (report.accesses, report.warnings) == ((), ())


# program, n, programs, buffer, elements, benign
TRITON = [
    ("strided", 200, 3, "out", [*range(200, 256), *range(400, 456)], False),
    ("in_place", 3, 3, "x", [256, 257, 258, 512, 513, 514], False),
    ("summed", 2, 3, "out", [0], False),
    ("total", 0, 2, "out", [0], True),
    ("running", 0, 2, "out", range(256), True),
]
CLEAN = [
    ("strided", 256, 3),
    ("strided", 300, 2),
    ("in_place", 0, 3),
    ("in_place", 768, 1),
    ("summed", 1, 3),
    ("shifted", 5, 3),
    ("counted", 256, 3),
    ("row_masked", 0, 3),
]


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(("name", "n", "programs", "buffer", "elements", "benign"), TRITON)
def test_triton_programs_that_race(
    name: str,
    n: int,
    programs: int,
    buffer: str,
    elements: Any,
    benign: bool,
    run_triton: Run,
) -> None:
    report = run_triton(name, n, programs=programs)
    assert report.warnings != ()
    for warning in report.warnings:
        assert (warning.buffer, warning.benign) == (buffer, benign)
        assert warning.elements.tolist() == list(elements)
        assert warning.block != warning.other.block


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(("name", "n", "programs"), CLEAN)
def test_triton_programs_that_do_not(name: str, n: int, programs: int, run_triton: Run) -> None:
    assert run_triton(name, n, programs=programs).warnings == ()


@pytest.mark.usefixtures("batches")
def test_equal_values_make_a_race_benign(run_triton: Run) -> None:
    x = Buffer("x", np.ones(1024, np.float32))
    (warning,) = run_triton("strided", 200, programs=3, x=x).warnings
    assert warning.benign
