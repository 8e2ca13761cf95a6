"""The planted kernels: what they were compiled from, and that each has the one fault it names."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from specrepro.repro.compilation import CompilerMissingError, compiler_version, nvrtc
from specrepro.repro.emulation.argument_file import load_arguments
from specrepro.repro.lanes.catalog import CATALOG, IN_KERNEL
from specrepro.repro.ptx_text import normalise
from specrepro.repro.records import Kind
from specrepro.repro.selftest.child import FIRST, HALVES
from specrepro.repro.selftest.faults import FAR, FAULTS, THREADS, marks
from specrepro.repro.selftest.reference import PROGRAMS

PLANTED = Path(str(files("specrepro") / "repro/selftest/ptx"))
BY_NAME = {fault.name: fault for fault in FAULTS}


@pytest.mark.compilers
def test_the_shipped_ptx_is_what_its_compiler_makes_of_the_source() -> None:
    made = json.loads((PLANTED / "manifest.json").read_text())["compiler"]
    try:
        here = compiler_version("cuda")
    except CompilerMissingError as error:
        pytest.skip(f"{error} is not installed")
    if here != made["version"]:
        pytest.skip(f"the shipped PTX is of {made['version']}, installed is {here}")
    fresh = nvrtc((PLANTED / "planted.cu").read_bytes(), "planted.cu").ptx
    assert normalise(fresh, "planted.cu") == (PLANTED / "planted.ptx").read_text()


def test_the_shipped_ptx_was_made_by_the_pinned_compiler() -> None:
    constraints = Path(__file__).parents[1] / "constraints.txt"
    made = json.loads((PLANTED / "manifest.json").read_text())["compiler"]
    assert f"nvidia-cuda-nvrtc=={made['version']}" in constraints.read_text().splitlines()


def test_the_emulator_is_shown_every_kind_that_it_says_it_sees_in_a_kernel() -> None:
    planted = {fault.kind for fault in FAULTS}
    in_kernels = CATALOG["emulator"].sees & (
        IN_KERNEL | {Kind.OUT_OF_BOUNDS_READ, Kind.OUT_OF_BOUNDS_WRITE, Kind.FOREIGN_WRITE}
    )
    assert in_kernels <= planted
    assert {None, Kind.HANG} <= planted


def test_the_marked_lines_are_of_the_kernel_that_names_them() -> None:
    source = (PLANTED / "planted.cu").read_text().splitlines()
    kernel = ""
    kernel_of = {}
    for number, line in enumerate(source, 1):
        if line.startswith("PLANTED "):
            kernel = line.removeprefix("PLANTED ").split("(")[0]
        kernel_of[number] = kernel
    found = marks()
    for name, lines in found.items():
        assert {kernel_of[line] for line in lines} == {name}
    with_findings = {fault.name for fault in FAULTS if fault.kind not in (None, Kind.HANG)}
    assert set(found) == with_findings


def test_a_line_that_a_kernel_states_is_the_line_on_which_it_stands() -> None:
    source = (PLANTED / "planted.cu").read_text().splitlines()
    calls = [(n, line) for n, line in enumerate(source, 1) if '"planted.cu", ' in line]
    assert [f'"planted.cu", {n}, ' in line for n, line in calls] == [True, True]


def test_reference_and_kernel_are_given_the_same() -> None:
    scalars = {}
    for name in PROGRAMS:
        arguments, _ = load_arguments(BY_NAME[name].arguments)
        numbers = [a.value.value for a in arguments.args if hasattr(a.value, "value")]
        scalars[name] = numbers
    assert scalars["far_write"] == scalars["far_read"] == [FAR]
    assert scalars["next_write"] == [THREADS]
    assert scalars["pool_write"] == [FIRST]
    pool = load_arguments(BY_NAME["pool_write"].arguments)[0].buffers[0]
    assert pool.owner is not None
    assert (pool.owner.unit, list(pool.owner.of)) == (HALVES.unit, HALVES.of.tolist())
    assert pool.size == 2 * THREADS
