"""Threads of a block that touch the same byte with nothing between them, and those that do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from specrepro.repro.emulator.launch import LaunchReport
from specrepro.repro.records import Kind

Run = Callable[..., LaunchReport]
NAMES = [
    "reverse",
    "next_turn",
    "lock_step",
    "mixed",
    "last_wins",
    "warp_only",
    "half_warp",
    "bytes",
    "branch",
    "handed_over",
    "too_late",
    "chain",
    "no_wait",
    "own_copy",
    "too_early",
]
# Bytes of shared memory that race: of the 128 integers of a block, or of what is said there.
WORDS = range(128 * 4)
RACING = {
    "reverse": WORDS,
    "next_turn": WORDS,
    "lock_step": range(4, 128),  # lane 0 is read by no other lane
    "mixed": range(4),
    "last_wins": range(16),
    "warp_only": WORDS,
    "half_warp": WORDS,
    "bytes": [8 * t + 3 for t in range(64)],
    "branch": range(64 * 4),
    "handed_over": range(32 * 4),
    "too_late": range(32 * 4),
    "chain": range(32 * 4),
    "no_wait": WORDS,
    "own_copy": WORDS,
    "too_early": WORDS,
}
OTHERS = {"mixed": ("update", "atomic"), "last_wins": ("write", "write")}


@pytest.mark.parametrize("name", NAMES)
def test_a_race_is_found_with_both_lines_and_its_bytes(
    name: str, run_cuda: Run, marks: Any
) -> None:
    report = run_cuda(f"{name}_bad")
    (found,) = report.accesses
    mark, access = OTHERS.get(name, ("read", "read"))
    assert found.kind is Kind.SHARED_RACE
    assert (found.file, found.line) == ("faults.cu", marks[f"{name} write"])
    assert found.other is not None
    assert (found.other.file, found.other.line) == ("faults.cu", marks[f"{name} {mark}"])
    assert found.other.access == access
    assert found.elements.tolist() == list(RACING[name])
    assert found.buffer is None
    assert f"faults.cu:{found.other.line}, unordered" in found.lands_in
    assert report.warnings == ()


def test_where_threads_store_copies_those_that_differ_are_told_and_no_race(run_cuda: Run) -> None:
    report = run_cuda("last_wins_bad", copies=True)
    assert report.accesses == ()
    [told] = report.uneven
    assert (told.buffer, told.elements.tolist()) == ("shared memory", list(RACING["last_wins"]))
    assert (told.access, told.other.access, told.line) == ("write", "write", told.other.line)
    assert run_cuda("last_wins_ok", copies=True).uneven == ()


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"last_wins"}))
def test_a_race_of_two_instructions_is_none_of_copies(name: str, run_cuda: Run) -> None:
    report = run_cuda(f"{name}_bad", copies=True)
    assert ([one.kind for one in report.accesses], report.uneven) == ([Kind.SHARED_RACE], ())


@pytest.mark.parametrize("name", NAMES)
def test_the_same_with_order_is_no_race(name: str, run_cuda: Run) -> None:
    report = run_cuda(f"{name}_ok")
    assert (report.accesses, report.warnings) == ((), ())


def test_the_threads_named_are_two_that_race(run_cuda: Run) -> None:
    """Thread t of reverse writes what thread 127 - t reads."""
    (found,) = run_cuda("reverse_bad").accesses
    assert found.other is not None
    assert found.thread[0] + found.other.thread[0] == 127
    assert found.block == found.other.block
    assert found.threads == 256


def test_the_launch_can_stop_at_the_first_race(run_cuda: Run) -> None:
    (found,) = run_cuda("next_turn_bad", stop_at_first=True).accesses
    assert found.kind is Kind.SHARED_RACE


# Lines of programs.py on which each program's threads exchange values.
TRITON = {
    "total": {11},
    "best": {17},
    "running": {23},
    "transposed": {31},
    "sorted_row": {37},
    "normalised": {45, 46},
}


def without_barriers(text: str) -> str:
    edited, count = re.subn(r"bar\.sync\s+0;", "", text)
    assert count
    return edited


@pytest.mark.parametrize("name", TRITON)
def test_a_triton_program_without_its_barriers_races(name: str, run_triton: Run) -> None:
    found = run_triton(name, edit=without_barriers).accesses
    assert {access.kind for access in found} == {Kind.SHARED_RACE}
    assert {access.line for access in found} == TRITON[name]
    assert {access.file for access in found} == {"programs.py"}


@pytest.mark.parametrize("name", TRITON)
def test_a_triton_program_as_compiled_does_not(name: str, run_triton: Run) -> None:
    report = run_triton(name)
    assert (report.accesses, report.warnings) == ((), ())


def test_each_barrier_between_two_uses_of_shared_memory_is_needed(run_triton: Run) -> None:
    """normalised reduces twice in the same bytes: three barriers, none of them for nothing."""
    for number in range(3):

        def without(text: str, number: int = number) -> str:
            places = [match.span() for match in re.finditer(r"bar\.sync\s+0;", text)]
            assert len(places) == 3
            first, end = places[number]
            return text[:first] + text[end:]

        assert run_triton("normalised", edit=without).accesses != ()
