"""Barriers that part threads, wait for ever, or name the wrong lanes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from specrepro.repro.emulator.launch import LaunchReport
from specrepro.repro.records import Kind

Run = Callable[..., LaunchReport]
# Lines at which each is found, and the threads of the two blocks there.
CUDA = {
    "odd_barrier": {"one": 128, "other": 128},
    "numbers": {"one": 128, "other": 128},
    "extra_turn": {"loop": 192, "after": 192},
    "left_out": {"meet": 8},
    "quarrel": {"meet": 128},
    "lost_lanes": {"meet": 64},
}


@pytest.mark.parametrize("name", CUDA)
def test_threads_at_barriers_that_part_them_are_found(name: str, run_cuda: Run, marks: Any) -> None:
    found = run_cuda(f"{name}_bad").accesses
    assert {access.kind for access in found} == {Kind.DIVERGENT_BARRIER}
    assert {access.line: access.threads for access in found} == {
        marks[f"{name} {what}"]: threads for what, threads in CUDA[name].items()
    }
    assert {access.file for access in found} == {"faults.cu"}


@pytest.mark.parametrize("name", CUDA)
def test_near_misses_pass(name: str, run_cuda: Run) -> None:
    assert run_cuda(f"{name}_ok").accesses == ()


TRITON = ["total", "running", "transposed", "normalised"]
PARITY = """{{ .reg .pred %even; .reg .b32 %who; mov.u32 %who, %{who}; and.b32 %who, %who, 1;
setp.eq.u32 %even, %who, 0; @%even bar.sync {first}; @!%even bar.sync {second}; }}"""


def parted(who: str, first: int, second: int) -> Callable[[str], str]:
    """Where the first barrier is, even and odd lanes (or warps) come to one each."""

    def edit(text: str) -> str:
        new = PARITY.format(who=who, first=first, second=second)
        edited, count = re.subn(r"bar\.sync\s+0;", new, text, count=1)
        assert count
        return edited

    return edit


@pytest.mark.parametrize("name", TRITON)
@pytest.mark.parametrize(
    ("who", "first", "second"), [("laneid", 0, 0), ("laneid", 1, 2), ("warpid", 1, 2)]
)
def test_a_barrier_of_a_triton_program_that_is_split(
    name: str, who: str, first: int, second: int, run_triton: Run
) -> None:
    (found,) = run_triton(name, edit=parted(who, first, second)).accesses
    assert (found.kind, found.threads) == (Kind.DIVERGENT_BARRIER, 128)


@pytest.mark.parametrize("name", TRITON)
def test_whole_warps_may_come_to_one_barrier_at_different_places(
    name: str, run_triton: Run
) -> None:
    assert run_triton(name, edit=parted("warpid", 0, 0)).accesses == ()
