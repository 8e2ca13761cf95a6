"""What a driver wrote down, read as what it is: text of a process that ran code of a build.

Everything is checked for type and size. A line that is not one of ours makes the rest unknown; a
file without its last line is cut, and what an oracle needs of it is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ...records import Scalar

MOST_BYTES = 64 << 20
LONGEST_LINE = 4 << 20
MOST_LINES = 100_000
MOST_TEXT = 4_000
FRAME = re.compile(r'\s{2}File "([^"]{1,400})", line (\d{1,7}), in (\S{1,100})$')
EXCEPTION = re.compile(r"(?:\s|\])((?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?:: .*)?)$")


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that were served side by side. `line`: of the observations, from 1.

    prompts: request → tokens of its prompt. steps: of each engine step, request → tokens that it
    got. tokens: request → what it was answered. metrics: counters of speculation, by what they
    rose. stuck: some request did not end in any sensible number of steps.
    """

    name: str
    line: int
    prompts: Mapping[str, int]
    steps: tuple[Mapping[str, int], ...]
    tokens: Mapping[str, tuple[int, ...]]
    metrics: Mapping[str, int | tuple[int, ...]]
    stuck: bool

    def count(self, metric: str) -> int | None:
        """A counter, None where the engine has none of that name."""
        value = self.metrics.get(metric)
        return value if isinstance(value, int) else None

    @property
    def per_position(self) -> tuple[int, ...]:
        """Accepted drafts by their position in a step; () where the engine does not tell."""
        value = self.metrics.get("accepted_tokens_per_pos")
        return value if isinstance(value, tuple) else ()

    def made(self, request: str) -> tuple[int, ...]:
        """Tokens that a request got in each step in which it got any."""
        return tuple(step[request] for step in self.steps if step.get(request))


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that ended the driver. phase: `start`, or `run` of an engine that was ready."""

    phase: str
    type: str
    message: str
    trace: str


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything of one start. engine: what the engine says of itself, None: it never got ready.

    notes: lines of other kinds, in order. complaint: "" for a file that is whole and is one.
    """

    engine: Mapping[str, Scalar | None] | None = None
    batches: Mapping[str, Batch] = field(default_factory=dict)
    notes: tuple[Mapping[str, Any], ...] = ()
    failure: Failure | None = None
    peak_mib: int | None = None
    complaint: str = ""


class _OddError(Exception):
    """A line is none that our driver writes."""


def read(path: Path) -> Observed:
    """The observations in a file."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        return Observed(complaint=f"there are no observations ({error.strerror})")
    if len(content) > MOST_BYTES:
        return Observed(complaint=f"the observations are longer than {MOST_BYTES >> 20} MiB")
    return parse(content)


def parse(content: bytes) -> Observed:
    """The observations in the bytes of a file."""
    engine: Mapping[str, Scalar | None] | None = None
    batches: dict[str, Batch] = {}
    notes: list[Mapping[str, Any]] = []
    failure: Failure | None = None
    peak: int | None = None
    complaint = ""
    done = False
    lines = content.split(b"\n")
    for number, raw in enumerate(lines[:-1], 1):
        try:
            line = _line(raw, number, done)
            kind = line["o"]
            if kind == "engine":
                _once(engine is None, "the engine says twice what it is")
                engine = {str(k)[:80]: v for k, v in line.items() if k != "o" and _scalar(v)}
            elif kind == "batch":
                batch = _batch(line, number)
                _once(batch.name not in batches, "a batch stands there twice")
                batches[batch.name] = batch
            elif kind == "failure":
                failure = Failure(*(_text(line, k) for k in ("phase", "type", "message", "trace")))
            elif kind == "memory":
                peak = None if line["peak_mib"] is None else _whole(line["peak_mib"])
            elif kind == "done":
                done = True
            else:
                notes.append(line | {"line": number})
        except (_OddError, AttributeError, KeyError, TypeError) as error:
            what = str(error) if isinstance(error, _OddError) else "it has another shape"
            complaint = f"line {number} of the observations is none of the driver's: {what}"
            break
    if not complaint and not (done or failure):
        complaint = "the observations are cut: their last line is missing"
    return Observed(engine, batches, tuple(notes), failure, peak, complaint)


def _once(first: bool, complaint: str) -> None:
    if not first:
        raise _OddError(complaint)


def _line(raw: bytes, number: int, done: bool) -> dict[str, Any]:
    if done:
        raise _OddError("it stands after the last one")
    if number > MOST_LINES or len(raw) > LONGEST_LINE:
        raise _OddError("it is too much")
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        raise _OddError("it is no JSON") from None
    if not isinstance(line, dict) or not isinstance(line.get("o"), str):
        raise _OddError("it is no observation")
    return line


def _batch(line: Mapping[str, Any], number: int) -> Batch:
    prompts = {_name(r): _whole(n) for r, n in line["prompts"].items()}
    if not isinstance(line["steps"], list) or not isinstance(line["stuck"], bool):
        raise _OddError("it has another shape")
    return Batch(
        _name(line["batch"]),
        number,
        prompts,
        tuple(_counts(step, prompts) for step in line["steps"]),
        {_known(r, prompts): _wholes(t) for r, t in line["tokens"].items()},
        {
            _name(k): _wholes(v) if isinstance(v, list) else _whole(v)
            for k, v in line["metrics"].items()
        },
        line["stuck"],
    )


def _counts(step: Any, prompts: Mapping[str, int]) -> dict[str, int]:
    return {_known(request, prompts): _whole(count) for request, count in step.items()}


def _known(request: Any, prompts: Mapping[str, int]) -> str:
    if request not in prompts:
        raise _OddError("a request of it was never made")
    return str(request)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 80 or not value.isprintable():
        raise _OddError("a name in it is none")
    return value


def _whole(value: Any) -> int:
    # counters of an engine are floats with whole values
    if type(value) not in (int, float) or value != value or not abs(value) < 1 << 53:
        raise _OddError("a number in it is none")
    if value != int(value):
        raise _OddError("a count in it is not whole")
    return int(value)


def _wholes(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list):
        raise _OddError("it has another shape")
    return tuple(map(_whole, values))


def _scalar(value: Any) -> bool:
    return value is None or (type(value) in (bool, int, float, str) and len(str(value)) <= 400)


def _text(line: Mapping[str, Any], key: str) -> str:
    value = line[key]
    if not isinstance(value, str):
        raise _OddError("it has another shape")
    return value[-MOST_TEXT:] if key == "trace" else value[:MOST_TEXT]


def log_lines(path: Path, wanted: Sequence[str], most: int = 40) -> list[tuple[int, str]]:
    """(number, text) of lines of a log that hold one of the words `wanted`, the first `most`."""
    lines = ((n, text) for n, text in _lines(path) if any(word in text for word in wanted))
    return list(islice(lines, most))


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that a log tells of. exception: its type and message. at: the innermost place of
    its traceback, `file:line in function: statement`, "" where the log shows none."""

    exception: str
    at: str = ""


def log_exception(path: Path) -> Raised | None:
    """The last exception that a log tells as an error; None for none."""
    found, at, frame = None, "", None
    for _, text in _lines(path):
        if "ERROR" not in text:
            continue
        if match := FRAME.search(text):
            frame = match
            at = f"{_in_package(match[1])}:{match[2]} in {match[3]}"
        elif match := EXCEPTION.search(text):
            found, at, frame = Raised(match[1][:200], at), "", None
        elif frame is not None:  # a statement stands right below its place
            at = f"{at}: {text[frame.start() :].strip()[:200]}"
            frame = None
    return found


def _in_package(path: str) -> str:
    """The path below the folder that packages are installed in."""
    return re.split(r"/(?:site|dist)-packages/", path)[-1]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, text) of the lines of a log, each cut; none of one that cannot be read."""
    try:
        with path.open("rb") as file:
            number = 0
            while raw := file.readline(LONGEST_LINE):
                number += 1
                yield number, raw[:1000].decode("utf-8", "replace").rstrip()
    except OSError:
        return


def log_tail(path: Path, lines: int = 12) -> list[str]:
    """The last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - (16 << 10)))
            return file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError:
        return []
