"""Alignment, ownership, and which checks are on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator import checks
from specrepro.repro.emulator.launch import Buffer, LaunchReport, launch
from specrepro.repro.emulator.ptx import Kernel
from specrepro.repro.errors import UnsupportedError, UsageError
from specrepro.repro.ops import NOBODY, Owners
from specrepro.repro.records import Kind

Run = Callable[..., LaunchReport]
Floats = Callable[..., Buffer]
MISALIGNED = {"pairs": ("read", 8), "quads": ("write", 16), "packed": ("read", 4)}
MISALIGNED["shorts"] = ("read", 2)


@pytest.mark.parametrize("name", MISALIGNED)
def test_a_misaligned_access_is_found(name: str, run_cuda: Run, marks: Any) -> None:
    what, width = MISALIGNED[name]
    found = [a for a in run_cuda(f"{name}_bad").accesses if a.kind is not Kind.SHARED_RACE]
    (access,) = found
    assert (access.kind, access.width) == (Kind.MISALIGNED_ACCESS, width)
    assert access.line == marks[f"{name} {what}"]


@pytest.mark.parametrize("name", MISALIGNED)
def test_a_multiple_of_the_width_is_aligned(name: str, run_cuda: Run) -> None:
    assert Kind.MISALIGNED_ACCESS not in {a.kind for a in run_cuda(f"{name}_ok").accesses}


@pytest.mark.parametrize("name", ["row_tail", "normalised", "total", "running"])
def test_a_triton_program_compiled_for_aligned_pointers(
    name: str, run_triton: Run, floats: Floats
) -> None:
    x = floats("x", 1)
    assert run_triton(name, 256, x=x).accesses == ()
    found = run_triton(name, 256, x=Buffer("x", x.data[1:])).accesses
    assert {access.kind for access in found} == {Kind.MISALIGNED_ACCESS}
    assert {access.buffer for access in found} == {"x"}


# Element i of out is of request i / 128, which block i / 128 works for.
@pytest.mark.parametrize(
    ("name", "kind", "elements"),
    [
        ("tail", Kind.FOREIGN_WRITE, range(128)),
        ("flag", Kind.FOREIGN_WRITE, [0]),
        ("reset", Kind.FOREIGN_WRITE, [0]),
        ("total", Kind.FOREIGN_WRITE, [0]),
    ],
)
def test_a_block_that_writes_what_is_another_requests(
    name: str, kind: Kind, elements: Any, run_cuda: Run
) -> None:
    owners = Owners(128, np.array([0, 1], np.int32))
    requests = np.array([0, 1], np.int32)
    found = run_cuda(f"{name}_bad", owners=owners, requests=requests).accesses
    (access,) = [access for access in found if access.kind is kind]
    assert (access.request, access.elements.tolist()) == (1, list(elements))
    clean = run_cuda("tail_ok", owners=owners, requests=requests)
    assert clean.accesses == ()


@pytest.mark.parametrize(
    ("name", "n", "kind", "which", "elements"),
    [
        ("shifted", 256, Kind.FOREIGN_WRITE, "out", {0: range(256, 512), 1: range(512, 768)}),
        ("in_place", 3, Kind.FOREIGN_READ, "x", {0: range(256, 259), 1: range(512, 515)}),
        ("strided", 200, Kind.FOREIGN_WRITE, "out", {1: range(200, 256)}),
        ("summed", 2, Kind.FOREIGN_READ, "out", {1: [0]}),
    ],
)
def test_a_triton_program_that_leaves_its_requests_tile(
    name: str,
    n: int,
    kind: Kind,
    which: str,
    elements: Mapping[int, Any],
    run_triton: Run,
    floats: Floats,
) -> None:
    owners = Owners(256, np.array([0, 1, NOBODY, NOBODY], np.int32))
    buffer = floats(which, 1, owners=owners)
    requests = np.array([0, 1], np.int32)
    report = run_triton(name, n, programs=2, requests=requests, **{which: buffer})
    found = {a.request: a.elements.tolist() for a in report.accesses if a.kind is kind}
    assert found == {request: list(each) for request, each in elements.items()}
    clean = run_triton(
        "strided", 256, programs=2, requests=requests, out=floats("out", 1, owners=owners)
    )
    assert clean.accesses == ()


def launched(kernel: Kernel, on: frozenset[str], **more: Any) -> LaunchReport:
    out = Buffer("out", np.zeros(256, np.int32), initialised=np.zeros(1024, np.bool_), **more)
    args = [out, Buffer("in", np.arange(256, dtype=np.int32))]
    return launch(kernel, (2, 1, 1), (128, 1, 1), args, checks=on)


@pytest.mark.parametrize(
    ("check", "name", "kind"),
    [
        (checks.SHARED_RACE, "reverse", Kind.SHARED_RACE),
        (checks.INITIALISED, "gap", Kind.UNINITIALISED_READ),
        (checks.INITIALISED, "halo", Kind.UNINITIALISED_READ),
        (checks.BARRIER, "odd_barrier", Kind.DIVERGENT_BARRIER),
        (checks.BARRIER, "quarrel", Kind.DIVERGENT_BARRIER),
    ],
)
def test_a_check_that_is_off_finds_nothing(
    check: str, name: str, kind: Kind, cuda: Mapping[str, Kernel]
) -> None:
    kernel = cuda[f"{name}_bad"]
    alone = launched(kernel, frozenset({check}))
    assert {access.kind for access in alone.accesses} == {kind}
    assert alone.checks == {check, checks.BOUNDS}
    assert launched(kernel, checks.ALL - {check}).accesses == ()


def test_warnings_can_be_off(cuda: Mapping[str, Kernel]) -> None:
    assert launched(cuda["tail_bad"], checks.ALL).warnings != ()
    assert launched(cuda["tail_bad"], checks.ALL - {checks.GLOBAL_RACE}).warnings == ()


def test_ownership_can_be_off(cuda: Mapping[str, Kernel]) -> None:
    owners = Owners(128, np.array([NOBODY, NOBODY], np.int32))
    args = [Buffer("out", np.zeros(256, np.int32), owners), Buffer("in", np.zeros(256, np.int32))]
    requests = np.array([0, 1], np.int32)
    for on, count in ((checks.DEFAULT, 2), (checks.DEFAULT - {checks.OWNERSHIP}, 0)):
        report = launch(cuda["tail_ok"], (2, 1, 1), (128, 1, 1), args, requests=requests, checks=on)
        assert len(report.accesses) == count


def test_misaligned_accesses_are_never_executed(cuda: Mapping[str, Kernel]) -> None:
    with pytest.raises(UnsupportedError, match="alignment off"):
        launched(cuda["pairs_bad"], frozenset())


def test_threads_that_wait_for_ever_are_unknown_where_barriers_are_not_looked_at(
    cuda: Mapping[str, Kernel],
) -> None:
    with pytest.raises(UnsupportedError, match="wait for ever"):
        launched(cuda["numbers_bad"], checks.DEFAULT)


def test_a_check_of_no_known_name_is_refused(cuda: Mapping[str, Kernel]) -> None:
    with pytest.raises(UsageError, match="no check is named raec"):
        launched(cuda["tail_ok"], frozenset({"raec"}))


def test_a_mark_for_each_byte_is_needed(cuda: Mapping[str, Kernel]) -> None:
    from specrepro.repro.errors import LaunchRefusedError

    out = Buffer("out", np.zeros(256, np.int32), initialised=np.zeros(256, np.bool_))
    with pytest.raises(LaunchRefusedError, match="1024 bytes"):
        launch(cuda["tail_ok"], (2, 1, 1), (128, 1, 1), [out, None], checks=checks.ALL)
