"""Which bytes are asked for, and a file made of them."""

from __future__ import annotations

import io
import itertools
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.check.ranges import Window, coalesce
from specrepro.repro.errors import UntestableError

STRETCHES = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(1, 300)).map(lambda p: (p[0], p[0] + p[1])),
    max_size=30,
)


class Bytes:
    """A span that counts what it is asked for."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[tuple[int, int]] = []

    def end(self, length: int) -> tuple[bytes, int]:
        return self.content[max(0, len(self.content) - length) :], len(self.content)

    def get(self, start: int, end: int) -> bytes:
        assert 0 <= start < end <= len(self.content)
        self.asked.append((start, end))
        return self.content[start:end]

    def close(self) -> None:
        pass


def covered(stretches: list[tuple[int, int]]) -> set[int]:
    return {at for start, end in stretches for at in range(start, end)}


@given(STRETCHES, st.integers(1, 6), st.integers(0, 500), st.integers(0, 5_000))
def test_joined_stretches_cover_all_and_waste_only_allowed_gaps(
    stretches: list[tuple[int, int]], at_most: int, near: int, far: int
) -> None:
    joined = coalesce(stretches, at_most=at_most, near=near, far=far)
    assert covered(stretches) <= covered(joined)
    assert joined == sorted(joined)
    gaps = [b[0] - a[1] for a, b in itertools.pairwise(joined)]
    assert all(gap > near for gap in gaps)
    # more than wanted only where every gap is too large to be read
    assert len(joined) <= at_most or all(gap > far for gap in gaps)
    bare = coalesce(stretches, at_most=len(stretches) + 1, near=0, far=0)
    wasted = [b[0] - a[1] for a, b in itertools.pairwise(bare)]
    allowed = [gap for gap in wasted if gap <= max(near, far)]
    assert len(covered(joined)) - len(covered(bare)) <= sum(allowed)


def test_the_smallest_gaps_are_the_ones_that_are_read() -> None:
    stretches = [(0, 10), (110, 120), (150, 160), (1000, 1010)]
    assert coalesce(stretches, at_most=2, near=5, far=500) == [(0, 160), (1000, 1010)]
    assert coalesce(stretches, at_most=1, near=5, far=500) == [(0, 160), (1000, 1010)]
    assert coalesce([], at_most=1) == []


@given(st.integers(0, 2000), st.integers(0, 64), st.integers(0, 2**32), st.floats(0, 2))
def test_a_window_reads_as_a_file_does_and_asks_for_no_byte_twice(
    size: int, tail: int, seed: int, lead: float
) -> None:
    chance = random.Random(seed)  # noqa: S311
    content = chance.randbytes(size)
    span = Bytes(content)
    window = Window(span, tail=tail)
    window.lead = lead
    file = io.BytesIO(content)
    for _ in range(12):
        at, count = chance.randint(0, size), chance.randint(-1, size // 3 + 1)
        assert window.seek(at) == file.seek(at)
        assert window.read(count) == file.read(count)
        assert window.tell() == file.tell()
    asked = [at for start, end in span.asked for at in range(start, end)]
    assert len(asked) == len(set(asked))


def test_a_window_seeks_from_all_three_places() -> None:
    window = Window(Bytes(bytes(range(100))), tail=10)
    assert window.seek(-5, os.SEEK_END) == 95
    assert window.read(2) == b"\x5f\x60"
    assert window.seek(1, os.SEEK_CUR) == 98
    assert window.read() == b"\x62\x63"
    with pytest.raises(OSError, match="before the beginning"):
        window.seek(-1)


def test_a_window_refuses_to_hold_more_than_an_archive_needs() -> None:
    class Endless(Bytes):
        def end(self, length: int) -> tuple[bytes, int]:
            return b"", 1 << 40

    with pytest.raises(UntestableError, match="read at once"):
        Window(Endless(b"")).read()
