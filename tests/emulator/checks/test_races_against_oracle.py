"""Random programs of loads, stores, atomics and barriers: the bytes that race, by definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrepro.repro.emulator import checks, shared_races
from specrepro.repro.emulator.launch import LaunchReport, launch
from specrepro.repro.emulator.ptx import Kernel
from specrepro.repro.records import Kind

Build = Callable[..., Kernel]
THREADS = 96
BYTES = 64


@dataclass(frozen=True)
class Step:
    """Threads first <= t < end touch record (a t + b) % m of `width` bytes, or synchronise."""

    what: str  # load, store, atomic, barrier, warp, halves
    width: int = 4
    a: int = 0
    b: int = 0
    m: int = 1
    first: int = 0
    end: int = THREADS

    def touched(self, thread: int) -> range:
        if not self.first <= thread < self.end:
            return range(0)
        start = (self.a * thread + self.b) % self.m * self.width
        return range(start, start + self.width)


@st.composite
def touches(draw: st.DrawFn) -> Step:
    what = draw(st.sampled_from(["load", "load", "store", "store", "atomic"]))
    width = 4 if what == "atomic" else draw(st.sampled_from([1, 2, 4]))
    first = draw(st.integers(0, THREADS - 1))
    return Step(
        what,
        width,
        draw(st.integers(0, 5)),
        draw(st.integers(0, 15)),
        draw(st.integers(1, BYTES // width)),
        *draw(st.sampled_from([(0, THREADS), (first, first + 1), (first, THREADS), (0, first)])),
    )


SYNCS = st.sampled_from(["barrier", "warp", "halves"]).map(Step)
PROGRAMS = st.lists(st.one_of(touches(), SYNCS), min_size=2, max_size=9)


def text(steps: list[Step]) -> str:
    lines = []
    for number, step in enumerate(steps):
        if step.what == "barrier":
            lines.append("bar.sync 0;")
        elif step.what == "warp":
            lines.append("bar.warp.sync -1;")
        elif step.what == "halves":
            lines.append("bar.warp.sync %half;")
        else:
            lines += [
                f"sub.u32 %u, %t, {step.first};",
                f"setp.lt.u32 %q, %u, {max(0, step.end - step.first)};",
                f"mad.lo.u32 %u, %t, {step.a}, {step.b}; rem.u32 %u, %u, {step.m};",
                f"mul.lo.u32 %u, %u, {step.width};",
                f"add.u32 %v, %t, {1 + number * THREADS}; mul.lo.u32 %v, %v, 0x01010101;",
                "cvt.u16.u32 %h, %v;",
            ]
            value = "%v" if step.width == 4 else "%h"
            kind = f"b{8 * step.width}"
            lines.append(
                {
                    "load": f"@%q ld.shared.{kind} {value}, [%u];",
                    "store": f"@%q st.shared.{kind} [%u], {value};",
                    "atomic": "@%q red.shared.add.u32 [%u], %v;",
                }[step.what]
            )
    return "\n".join(lines)


def racing(steps: list[Step]) -> set[int]:
    """Bytes with two unordered accesses, by what each thread knows of each other one."""
    known = np.full((THREADS, THREADS), -1)
    done: list[tuple[int, int, str, range]] = []
    found: set[int] = set()
    for number, step in enumerate(steps):
        if step.what in ("barrier", "warp", "halves"):
            size = {"barrier": THREADS, "warp": 32, "halves": 16}[step.what]
            for first in range(0, THREADS, size):
                known[first : first + size] = known[first : first + size].max(axis=0)
                known[first : first + size, first : first + size] = number
            continue
        now = [(number, t, step.what, step.touched(t)) for t in range(THREADS)]
        for n, a, what, there in done:
            for _, b, _, here in now:
                if a == b or {what, step.what} in ({"load"}, {"atomic"}) or known[b, a] > n:
                    continue
                found.update(set(there) & set(here))
        if step.what == "store":  # no two threads store the same
            seen: dict[int, int] = {}
            for _, t, _, here in now:
                found.update(byte for byte in here if byte in seen)
                seen.update(dict.fromkeys(here, t))
        done += [each for each in now if each[3]]
    return found


@pytest.mark.parametrize("way", ["at once", "in pieces", "blocks apart", "few barriers"])
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=PROGRAMS)
def test_the_bytes_found_are_those_of_the_definition(
    steps: list[Step], way: str, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_races, "LIMIT", 100 if way == "in pieces" else 1 << 19)
    monkeypatch.setattr(shared_races, "APART", 0 if way == "few barriers" else 1 << 22)
    monkeypatch.setattr(shared_races, "FEW", 0 if way == "few barriers" else 4)
    declare = f""".reg .b32 %u, %v, %half; .reg .b16 %h; .reg .pred %q;
    .shared .align 16 .b8 table[{BYTES}];"""
    halves = """and.b32 %u, %t, 16; setp.eq.u32 %q, %u, 0;
    selp.b32 %half, 0x0000ffff, 0xffff0000, %q;"""
    body = halves + text(steps)
    if way in ("blocks apart", "few barriers"):  # each block has a copy of the program
        body = f"""{halves} mov.u32 %u, %ctaid.x; setp.eq.u32 %q, %u, 1; @%q bra second;
        {text(steps)} bra.uni done; second: {text(steps)} done:"""
    kernel = build(body, 0, declare)
    on = frozenset({checks.SHARED_RACE, checks.BARRIER})
    report: LaunchReport = launch(kernel, (2, 1, 1), (THREADS, 1, 1), [], checks=on)
    found: set[Any] = set()
    for access in report.accesses:
        assert access.kind is Kind.SHARED_RACE
        found.update(access.elements.tolist())
    assert _words(found, steps) == _words(racing(steps), steps)


def _words(found: set[int], steps: list[Step]) -> set[int]:
    """Bytes to what the narrowest access touches, which is how exact the emulator is."""
    grain = min((s.width for s in steps if s.what in ("load", "store", "atomic")), default=4)
    return {byte // grain for byte in found}
