"""Random programs on a buffer that all blocks share: the bytes that race, by definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specrepro.repro.emulator import checks, global_races
from specrepro.repro.emulator import launch as launching
from specrepro.repro.emulator.launch import Buffer, launch
from specrepro.repro.emulator.ptx import Kernel

Build = Callable[..., Kernel]
BLOCKS, THREADS, BYTES = 4, 32, 64
MANNERS = {"load": "read", "store": "write", "atomic": "atomic"}


@dataclass(frozen=True)
class Step:
    """Threads i < end of the launch touch record (a block + b thread + c) % m of `width` bytes.

    shift: where the buffer begins, so that records do not begin where it does.
    """

    what: str
    width: int
    a: int
    b: int
    c: int
    m: int
    end: int

    def touched(self, number: int) -> range:
        if number >= self.end:
            return range(0)
        block, thread = divmod(number, THREADS)
        start = (self.a * block + self.b * thread + self.c) % self.m * self.width
        return range(start, start + self.width)


@st.composite
def touches(draw: st.DrawFn) -> Step:
    what = draw(st.sampled_from(sorted(MANNERS)))
    width = 4 if what == "atomic" else draw(st.sampled_from([1, 2, 4]))
    return Step(
        what,
        width,
        draw(st.integers(0, 4)),
        draw(st.integers(0, 1)),
        draw(st.integers(0, 3)),
        draw(st.integers(1, BYTES // width)),
        draw(st.integers(1, BLOCKS * THREADS)),
    )


def text(steps: list[Step]) -> str:
    lines = ["mov.u32 %b, %ctaid.x;"]
    for number, step in enumerate(steps):
        value = "%v" if step.width == 4 else "%h"
        kind = f"b{8 * step.width}"
        lines += [
            f"mad.lo.u32 %u, %b, {step.a}, {step.c}; mad.lo.u32 %u, %t, {step.b}, %u;",
            f"rem.u32 %u, %u, {step.m}; mad.wide.u32 %at, %u, {step.width}, %p0;",
            f"setp.lt.u32 %q, %i, {step.end};",
            f"add.u32 %v, %i, {1 + 50 * number}; mul.lo.u32 %v, %v, 0x01010101;",
            "cvt.u16.u32 %h, %v;",
            {
                "load": f"@%q ld.global.{kind} {value}, [%at];",
                "store": f"@%q st.global.{kind} [%at], {value};",
                "atomic": "@%q red.global.add.u32 [%at], %v;",
            }[step.what],
        ]
    return "\n".join(lines)


def racing(steps: list[Step]) -> set[int]:
    """Bytes that two blocks touch, one of them writing, not both by atomics."""
    done = [
        (number // THREADS, step.what, set(step.touched(number)))
        for step in steps
        for number in range(BLOCKS * THREADS)
        if number < step.end
    ]
    found: set[int] = set()
    by_byte: dict[int, set[tuple[int, str]]] = {}
    for block, what, there in done:
        for byte in there:
            by_byte.setdefault(byte, set()).add((block, what))
    for byte, users in by_byte.items():
        if any(a != b and {x, y} not in ({"load"}, {"atomic"}) for a, x in users for b, y in users):
            found.add(byte)
    return found


@pytest.mark.parametrize("limit", [1 << 19, 50], ids=["whole batches", "pieces"])
@pytest.mark.parametrize("lanes", [1, 2 * THREADS, 1 << 14], ids=["a block", "two", "all"])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(touches(), min_size=1, max_size=5), shift=st.integers(0, 3))
def test_the_bytes_warned_of_are_those_of_the_definition(
    steps: list[Step],
    shift: int,
    lanes: int,
    limit: int,
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launching, "LANES", lanes)
    monkeypatch.setattr(global_races, "LIMIT", limit)
    monkeypatch.setattr(global_races, "MOST", limit)
    declare = ".reg .b64 %at; .reg .b32 %u, %v, %b; .reg .b16 %h; .reg .pred %q;"
    memory = np.zeros(BYTES + 16, np.uint8)[4 * shift : 4 * shift + BYTES]
    kernel = build(text(steps), 1, declare)
    on = frozenset({checks.GLOBAL_RACE, checks.ALIGNMENT})
    report = launch(kernel, (BLOCKS, 1, 1), (THREADS, 1, 1), [Buffer("x", memory)], checks=on)
    assert report.accesses == ()
    found = {int(byte) for warning in report.warnings for byte in warning.elements}
    grain = min(step.width for step in steps)
    assert {byte // grain for byte in found} == {byte // grain for byte in racing(steps)}
