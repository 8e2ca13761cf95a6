"""Lines with a hit, out of pieces of a log, each with the lines behind it.

A buffer holds a piece and what is needed to look AHEAD of its last lines. Lines are counted, not
made: only those with a hit, and those a record reaches for, become text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .line import Following, Line
from .literals import Search
from .prefixes import peel

# How far a record may reach behind its first line.
AHEAD = 128 * 1024
AHEAD_LINES = 600
# Of a longer line the beginning is read, and the rest is counted as unread.
LONGEST = 64 * 1024


@dataclass(slots=True)
class Counts:
    """What was passed over, and how much there was."""

    lines: int = 0
    long: int = 0
    first_long: int = 0
    binary: int = 0
    first_binary: int = 0


@dataclass(slots=True)
class _Buffer:
    data: bytes
    first: int
    # start of a line → the line, without prefixes
    peeled: dict[int, Line] = field(default_factory=dict)

    def line(self, start: int, end: int, number: int) -> Line:
        known = self.peeled.get(start)
        if known is None:
            raw = self.data[start : min(end, start + LONGEST)]
            text = raw.decode("utf-8", "replace").rstrip("\r\n")
            known = self.peeled[start] = peel(text, number)
        return known

    def following(self, line: Line, end: int) -> Following:
        """The lines behind `end` that are of the same process; unprefixed ones are."""

        def lines() -> Iterator[Line]:
            start, number = end + 1, line.number
            stop = min(len(self.data), end + AHEAD)
            for _ in range(AHEAD_LINES):
                if start >= stop:
                    return
                until = self.data.find(b"\n", start, stop)
                until = stop if until < 0 else until
                number += 1
                other = self.line(start, until, number)
                if other.prefix.key in (line.prefix.key, (None, None)):
                    yield other
                start = until + 1

        return lines


def hit_lines(
    pieces: Iterator[bytes], search: Search, counts: Counts, first: int = 1
) -> Iterator[tuple[Line, Following]]:
    """Each line that has a literal, in order; `counts` is kept up to date. `first`: its number."""
    rest, number, skipping, ended = b"", first, False, False
    while not ended:
        piece = next(pieces, None)
        ended = piece is None
        data = rest + (piece or b"")
        if skipping:
            end = data.find(b"\n")
            if end < 0:
                rest = b""
                continue
            # the rest of a line whose beginning was read
            data, number, skipping = data[end + 1 :], number + 1, False
        limit = len(data) if ended else data.rfind(b"\n", 0, max(0, len(data) - AHEAD)) + 1
        if limit == 0 and not ended:
            if len(data) < AHEAD + LONGEST or data.find(b"\n") >= 0:
                rest = data
                continue
            # one line fills the buffer
            data, limit, skipping = data[:LONGEST], LONGEST, True
        yield from _hits(_Buffer(data, number), limit, search, counts)
        if skipping:
            counts.long += 1
            counts.first_long = counts.first_long or number
            rest = b""
            continue
        number += data.count(b"\n", 0, limit)
        rest = data[limit:]
    last = 1 if data[:limit] and not data.endswith(b"\n") else 0
    counts.lines = number - first + (1 if skipping else last)


def _hits(
    buffer: _Buffer, limit: int, search: Search, counts: Counts
) -> Iterator[tuple[Line, Following]]:
    data, number, counted, end = buffer.data, buffer.first, 0, -1
    for hit in search(data[:limit] if limit < len(data) else data):
        if hit < end:
            continue
        start = data.rfind(b"\n", max(end, 0), hit) + 1
        start = max(start, end + 1)
        end = data.find(b"\n", hit)
        end = len(data) if end < 0 else end
        number += data.count(b"\n", counted, start)
        counted = start
        if end - start > LONGEST:
            counts.long += 1
            counts.first_long = counts.first_long or number
        if data.find(b"\0", start, min(end, start + LONGEST)) >= 0:
            counts.binary += 1
            counts.first_binary = counts.first_binary or number
        line = buffer.line(start, end, number)
        yield line, buffer.following(line, end)
