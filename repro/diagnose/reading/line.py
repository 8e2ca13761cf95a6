"""What a parser of lines is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..facts import Certainty, Time, Value

if TYPE_CHECKING:
    from ...sanitizer.text import Parser as Sanitizer


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stood before a line's own text.

    name: as written ("Worker_TP1", "EngineCore_DP0", "rank3"); process: its kind; level: INFO,
    ERROR…; location: `file.py:123` of the record. host: of a carrier. engine: whose form it is.
    carriers: names of the wrappings, outermost first. repeats: how often Ray saw the line.
    logged: whether a program's own record header stood there.
    """

    name: str | None = None
    process: str | None = None
    rank: str | None = None
    pid: int | None = None
    time: Time | None = None
    level: str | None = None
    location: str | None = None
    host: str | None = None
    engine: str | None = None
    carriers: tuple[str, ...] = ()
    repeats: int = 1
    logged: bool = False

    @property
    def key(self) -> tuple[str | None, int | None]:
        """Lines of equal keys are of one process; (None, None) for lines that do not say."""
        return (self.name, self.pid)


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its prefixes. `number` counts from 1 in its source."""

    text: str
    number: int
    prefix: Prefix = Prefix()


# The lines behind a line that are of its process, lazily and within bounds.
Following = Callable[[], Iterator[Line]]


@dataclass(frozen=True, slots=True)
class Found:
    """One fact to be, before it is placed. `line` where it is not the line that was read."""

    kind: str
    values: Mapping[str, Value]
    line: Line | None = None
    certainty: Certainty = Certainty.OBSERVED
    text: str | None = None


@dataclass(slots=True)
class State:
    """What reading one source remembers from line to line. Bounded: it holds no text of the log.

    prose: the source is what a person wrote around blocks.
    starts: processes that announced an engine in this session; lengths: max-model-len lines of it.
    blocking: CUDA_LAUNCH_BLOCKING=1 was seen.
    read_to: kind of record and key of a process → last line that such a record took.
    idle: engine of a process → load lines in a row that showed requests and not one token.
    owner: last line of the last traceback, and the prefix of its first; raw lines have none.
    chained: key of a process → line where one traceback led on to the next.
    """

    prose: bool = False
    session: int = 0
    starts: set[tuple[str | None, int | None]] = field(default_factory=set)
    announced: bool = False
    lengths: int = 0
    blocking: bool = False
    read_to: dict[tuple[str, str | None, int | None], int] = field(default_factory=dict)
    chained: dict[tuple[str | None, int | None], int] = field(default_factory=dict)
    idle: dict[tuple[str, str | None, int | None], int] = field(default_factory=dict)
    owner: tuple[int, Prefix] = (0, Prefix())
    sanitizer: Sanitizer | None = None

    def owned(self, line: Line) -> Line:
        """The line with the prefix of the traceback that it is part of, if it has none itself."""
        last, prefix = self.owner
        if line.number > last or line.prefix.name or line.prefix.time or line.prefix.logged:
            return line
        return Line(line.text, line.number, prefix)

    def take(self, record: str, line: Line, last: int) -> None:
        """A record that began on `line` reaches to line `last`."""
        if len(self.read_to) > 256:
            self.read_to.clear()
        self.read_to[(record, *line.prefix.key)] = last

    def taken(self, record: str, line: Line) -> bool:
        """Whether the line was read as part of such a record."""
        key = (record, *line.prefix.key)
        last = max(self.read_to.get(key, 0), self.read_to.get((record, None, None), 0))
        return line.number <= last if line.prefix.name else line.number <= self._any(record, last)

    def _any(self, record: str, last: int) -> int:
        """An unprefixed line may be part of the record of any process."""
        return max((n for (of, *_), n in self.read_to.items() if of == record), default=last)


Reader = Callable[[Line, Following, State], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class Parser:
    """A reader of lines and the literals one of which must be in a line for it to be asked."""

    triggers: tuple[str, ...]
    read: Reader


def joined(line: Line, following: Following, most: int = 6) -> str:
    """The line with the lines behind it that have no prefix of their own: a wrapped line, whole."""
    return joined_to(line, following, most)[0]


def joined_to(line: Line, following: Following, most: int = 6) -> tuple[str, int]:
    """As `joined`, and the number of the last line that was taken.

    A break may have taken a space with it or not: none is put after a character that ends no word
    of these formats.
    """
    text, last = line.text.rstrip(), line.number
    for taken, other in enumerate(following()):
        part = other.text.strip()
        if taken >= most or other.prefix.logged or not part:
            break
        text += part if text.endswith(("_", "/", "-", "(", "[")) else f" {part}"
        last = other.number
    return text, last
