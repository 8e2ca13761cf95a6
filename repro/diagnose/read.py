"""Logs to facts: one pass, constant memory, any size, no byte of which can stop it.

Lines are looked at only where a literal of a parser stands in them (`reading/literals.py`). What
could not be read is counted and said, never passed over in silence.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..escape import printable
from .facts import Certainty, Fact, Reading, Source, Unread
from .reading.incidents import incidents
from .reading.keeper import Keeper
from .reading.line import Found, Line, Prefix, State
from .reading.literals import is_fast
from .reading.page_signs import LARGEST, is_page
from .reading.prefixes import peel
from .reading.registry import search, wanted
from .reading.sanitizer_lines import ended
from .reading.streams import Stream, open_log
from .reading.windows import Counts, hit_lines

if TYPE_CHECKING:
    from .reading.pages import Segment

# Beyond this size the one-pass search is worth its installation.
SLOW = 16 * 1024 * 1024
FAST_HINT = (
    "large logs are searched about a hundred times faster with pip install 'specrepro[logs]'"
)

# In prose these have a form that nobody writes by hand.
_FORMED = frozenset(
    {"python_exception", "spec_metrics", "scheduler_dump", "sanitizer_error", "device_assert"}
)
# In prose these would be the words of an experiment, not the state of the engine.
_UNSAID = frozenset(
    {"graph_mode", "async_scheduling", "prefix_caching", "false_clue", "restart", "runner"}
)


def read(paths: Iterable[Path]) -> Reading:
    """Read logs by path; "-" is the standard input.

    Raises UsageError for a path that is no file or pipe, or cannot be opened.
    """
    return read_streams((str(path), open_log(path)) for path in paths)


def read_streams(streams: Iterable[tuple[str, IO[bytes]]]) -> Reading:
    """Read open streams, each with its name. Each is closed when it was read."""
    whole = _Whole()
    for name, raw in streams:
        with raw:
            whole.read(printable(name), Stream(raw))
    return whole.reading()


def read_text(name: str, text: str) -> Reading:
    """Read a text that is in memory."""
    return read_streams([(name, io.BytesIO(text.encode("utf-8", "surrogateescape")))])


@dataclass(slots=True)
class _Whole:
    sources: list[Source] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    hints: list[str] = field(default_factory=list)

    def read(self, name: str, stream: Stream) -> None:
        pieces = stream.pieces()
        first = next(pieces, b"")
        if first and is_page(name, first):
            first += b"".join(_up_to(pieces, LARGEST - len(first)))
            rest = next(pieces, b"")
            if not rest:
                self._page(name, first, stream)
                return
            first += rest
            self.unread.append(
                Unread(len(self.sources), "a page of this size is read as one log", 1, 1)
            )
        one = _One(len(self.sources))
        one.lines(_chain(first, pieces))
        self._add(one, Source(name, "file"), stream)
        if stream.bytes > SLOW and not is_fast():
            self.hints.append(FAST_HINT)

    def _page(self, name: str, content: bytes, stream: Stream) -> None:
        from .reading.pages import segments

        parts, over = segments(content.decode("utf-8", "replace"))
        if over:
            self.unread.append(
                Unread(len(self.sources), "blocks beyond the first thousand", over, 1)
            )
        for number, part in enumerate(parts, start=1):
            prose = part.part == "prose"
            one = _One(len(self.sources), prose=prose, told=part.is_told, first=part.first_line)
            text = part.text.encode("utf-8", "replace")
            one.lines(iter([text]))
            if prose:
                one.claims(part)
            shown = f"{name}#{number}" if len(parts) > 1 else name
            author = printable(part.author) if part.author else None
            source = Source(shown, part.part, first_line=part.first_line, author=author)
            self._add(one, source, stream, len(text))
        if not parts:
            self._add(_One(len(self.sources)), Source(name, "prose"), stream)

    def _add(self, one: _One, source: Source, stream: Stream, size: int | None = None) -> None:
        if stream.hint and stream.hint not in self.hints:
            self.hints.append(stream.hint)
        self.facts += one.finish()
        self.left_out += one.keeper.left_out
        self.unread += one.unread(stream.cut)
        carriers = one.carriers.most_common(1)
        self.sources.append(
            Source(
                source.name,
                source.part,
                carriers[0][0] if carriers else "plain",
                source.first_line,
                one.counts.lines,
                stream.bytes if size is None else size,
                source.author,
                stream.cut is None,
                stream.cut,
                one.host,
            )
        )

    def reading(self) -> Reading:
        facts = tuple(self.facts)
        return Reading(
            tuple(self.sources),
            facts,
            incidents(facts),
            tuple(self.unread),
            dict(self.left_out),
            tuple(self.hints),
        )


class _One:
    """Reads one source."""

    def __init__(
        self, index: int, *, prose: bool = False, told: bool = False, first: int = 1
    ) -> None:
        self.keeper = Keeper(index)
        self.counts = Counts()
        self.carriers: Counter[str] = Counter()
        self.host: str | None = None
        self._state = State(prose=prose)
        self._prose, self._told, self._first = prose, told, first
        self._failed: Counter[str] = Counter()
        self._failed_first: dict[str, int] = {}
        self._engine: str | None = None

    def lines(self, pieces: Iterator[bytes]) -> None:
        """Read all lines that some parser wants."""
        for line, following in hit_lines(pieces, search(), self.counts, self._first):
            self._note(line)
            for parser in wanted(line.text):
                session = self._state.session
                try:
                    found = list(parser.read(line, following, self._state))
                except (
                    ValueError,
                    TypeError,
                    LookupError,
                    ArithmeticError,
                    RecursionError,
                ) as error:
                    # a line that a parser cannot take is said, and the others are read
                    what = f"a parser failed on a line: {type(error).__name__}"
                    self._failed[what] += 1
                    self._failed_first.setdefault(what, line.number)
                    continue
                owned = self._state.owned(line)
                self._keep(found, owned, max(session, self._state.session))

    def claims(self, part: Segment) -> None:
        """Read what the prose of a page claims."""
        from .reading.claims import read_claims

        for number, text in enumerate(part.text.split("\n"), start=part.first_line):
            if not text.strip():
                continue
            line = peel(text, number)
            if line.prefix.logged or line.prefix.name:
                continue
            for found in read_claims(line):
                self.keeper.add(found, line, self._state.session, Certainty.CLAIMED)

    def finish(self) -> list[Fact]:
        """The facts of this source, in order."""
        for found in ended(self._state):
            line = found.line or Line("", self.counts.lines + self._first - 1)
            self._keep([found], line, self._state.session)
        return list(self.keeper.facts())

    def unread(self, cut: str | None) -> Iterator[Unread]:
        """What was not read of this source."""
        index, counts = self.keeper.source, self.counts
        if counts.long:
            yield Unread(
                index, "lines longer than 64 KiB, read up to there", counts.long, counts.first_long
            )
        if counts.binary:
            yield Unread(index, "lines with binary content", counts.binary, counts.first_binary)
        if cut:
            yield Unread(index, cut, 1, counts.lines + 1)
        for what, count in self._failed.items():
            yield Unread(index, what, count, self._failed_first[what])

    def _note(self, line: Line) -> None:
        prefix = line.prefix
        if prefix.carriers:
            self.carriers[prefix.carriers[0]] += 1
        if prefix.host and self.host is None:
            self.host = printable(prefix.host)
        if prefix.engine and prefix.engine != self._engine:
            self._engine = prefix.engine
            values = {"name": prefix.engine, "version": "", "commit": None, "origin": "prefix"}
            self._keep([Found("engine", values)], line, self._state.session)

    def _keep(self, found: list[Found], line: Line, session: int) -> None:
        certainty = Certainty.CLAIMED if self._told else Certainty.OBSERVED
        unsure = self._prose and not (line.prefix.logged or line.prefix.name)
        for fact in found:
            if unsure and fact.kind in _UNSAID:
                continue
            said = unsure and not (fact.kind in _FORMED or _has_kernel_form(fact, line.prefix))
            self.keeper.add(fact, line, session, Certainty.CLAIMED if said else certainty)


def _has_kernel_form(found: Found, prefix: Prefix) -> bool:
    """Kernel lines are told by the driver's grammar, with or without their stamp."""
    return found.kind in ("xid", "sxid") or prefix.process == "kernel"


def _up_to(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    while size > 0 and (piece := next(pieces, None)) is not None:
        size -= len(piece)
        yield piece


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
