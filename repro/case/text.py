"""The YAML of a case file, turned into plain data that knows where each value stands.

Only the part of YAML is taken that every reader understands the same way: mappings, lists and
scalars in one document. The parser's events are consumed one by one, so a hostile file is refused
at the first line that goes too far, before anything is built from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast

import yaml
from yaml.resolver import Resolver

from ..escape import printable, quoted
from .source import Place, Position, Problem, failure, position_after

MAX_DEPTH = 20
MAX_NODES = 10_000

INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
CONSTANTS: Mapping[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
MEANINGS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "null": "nothing",
    "timestamp": "a date",
    "value": "a default value",
    "str": "text",
}
RESOLVER: Any = Resolver()  # of YAML 1.1, as PyYAML and many other readers have it


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a case file (a mapping of plain values) and where each value stands.

    `positions` has the place of every value; a mapping's value stands where its key does.
    """

    data: dict[str, Any]
    positions: Mapping[Place, Position]

    def position(self, place: Place) -> Position:
        """Of the value at `place`, or of the nearest one around it that the file has."""
        while place and place not in self.positions:
            place = place[:-1]
        return self.positions[place]


def compose(path: Path, text: str, what: str = "case") -> Document:
    """The one mapping that `text` holds. CaseError for YAML that is broken or not plain data.

    what: messages call it a `what`.
    """
    composer = _Composer(what)
    try:
        data = composer.document(_events(text))
    except _Refusal as refusal:
        raise failure(path, refusal.problem, refusal.position) from None
    return Document(data, composer.positions)


class _Refusal(Exception):
    """Carries a problem and its position out of the recursion."""

    def __init__(self, problem: Problem, position: Position) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.position = position


def _refuse(place: Place, message: str, event: yaml.Event, hint: str | None = None) -> NoReturn:
    raise _Refusal(Problem(place, message, hint), _start(event))


def _start(event: yaml.Event) -> Position:
    return _position(event.start_mark)


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _events(text: str) -> Iterator[yaml.Event]:
    """The parser's events; refuses where the text stops being YAML."""
    loader: Any  # the stubs leave its methods untyped
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        message = f"character U+{ord(text[error.position]):04X} is not allowed in YAML"
        position = position_after(text[: error.position])
        raise _Refusal(Problem((), message), position) from None
    try:
        while loader.check_event():
            yield loader.get_event()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or loader.get_mark()
        reason = ": ".join(part for part in (error.context, error.problem) if part)
        problem = Problem((), f"not valid YAML: {printable(reason[:200])}")
        raise _Refusal(problem, _position(mark)) from None
    except (ValueError, OverflowError):
        # PyYAML lets int() and chr() speak for escapes and version numbers out of range.
        problem = Problem((), "not valid YAML: number out of range")
        raise _Refusal(problem, _position(loader.get_mark())) from None
    finally:
        loader.dispose()


@dataclass(slots=True)
class _Composer:
    """Builds plain data out of events and remembers where every value stood."""

    what: str
    positions: dict[Place, Position] = field(default_factory=dict)
    nodes: int = 0

    def document(self, events: Iterator[yaml.Event]) -> dict[str, Any]:
        next(events)  # the start of the stream
        event = next(events)
        if isinstance(event, yaml.DocumentStartEvent):
            event = next(events)
        self.count((), event)
        nothing = isinstance(event, yaml.ScalarEvent) and event.value == "" and not event.style
        if nothing or isinstance(event, yaml.StreamEndEvent):
            _refuse((), f"is empty; a {self.what} is a mapping of keys to values", event)
        if not isinstance(event, yaml.MappingStartEvent):
            _refuse((), f"a {self.what} is a mapping of keys to values", event)
        self.positions[()] = _start(event)
        data = self.mapping((), events)
        next(events)  # the end of the document
        event = next(events)
        if not isinstance(event, yaml.StreamEndEvent):
            message = f"a second document starts here; a file holds one {self.what}"
            _refuse((), message, event)
        return data

    def value(self, place: Place, event: yaml.Event, events: Iterator[yaml.Event]) -> Any:
        self.count(place, event)
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(place, events)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(place, events)
        return _scalar(place, cast(yaml.ScalarEvent, event))

    def mapping(self, place: Place, events: Iterator[yaml.Event]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            self.count(place, event)
            key = _key(place, event)
            inner = (*place, key)
            if key in data:
                line = self.positions[inner].line
                message = f"the key stands here for a second time; the first is on line {line}"
                _refuse(inner, message, event)
            self.positions[inner] = _start(event)
            data[key] = self.value(inner, next(events), events)
        return data

    def sequence(self, place: Place, events: Iterator[yaml.Event]) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            inner = (*place, len(items))
            self.positions[inner] = _start(event)
            items.append(self.value(inner, event, events))
        return items

    def count(self, place: Place, event: yaml.Event) -> None:
        """Refuse what only full YAML has, and what is too much."""
        for attribute, sign, name in (("anchor", "&", "anchors"), ("tag", "", "tags")):
            word = getattr(event, attribute, None)
            if word is None:
                continue
            if isinstance(event, yaml.AliasEvent):
                sign, name = "*", "aliases"
            message = f"{name} ({printable(sign + word[:60])}) are not allowed"
            _refuse(place, message, event, "write the value itself")
        self.nodes += 1
        if self.nodes > MAX_NODES:
            _refuse(place[:3], f"more than {MAX_NODES:,} keys and values", event)
        if len(place) > MAX_DEPTH:
            _refuse(place[:3], f"nested deeper than {MAX_DEPTH} levels", event)


def _key(place: Place, event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent):
        _refuse(place, "a key must be text, not a list or mapping", event)
    key = _encodable(place, event)
    meaning = _meaning_in_1_1(event)
    if meaning == "merge":
        _refuse(place, "merge keys (<<) are not allowed", event, "write the keys out")
    if meaning != "str":
        message = f"the key {quoted(key)} reads as {MEANINGS[meaning]}; a key must be text"
        _refuse(place, message, event, "put it in quotes")
    return key


def _meaning_in_1_1(event: yaml.ScalarEvent) -> str:
    """What YAML 1.1 makes of a scalar: "bool", "int", "str"…"""
    if event.style:
        return "str"
    tag: str = RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False))
    return tag.rpartition(":")[2]


def _encodable(place: Place, event: yaml.ScalarEvent) -> str:
    text: str = event.value
    if any("\ud800" <= c <= "\udfff" for c in text):
        _refuse(place, "holds half of a surrogate pair, which is no character", event)
    return text


def _scalar(place: Place, event: yaml.ScalarEvent) -> bool | int | float | str:
    """The value of a scalar in YAML 1.2's core schema, if YAML 1.1 reads it the same way."""
    text = _encodable(place, event)
    if event.style:
        return text
    value: bool | int | float | str | None = text
    meaning = "str"
    if text in CONSTANTS:
        value = CONSTANTS[text]
        meaning = "null" if value is None else "bool"
    elif INTEGER.fullmatch(text):
        # 20 characters hold a sign and 19 digits; int() is quadratic in the length of its text
        value, meaning = int(text) if len(text) <= 20 else 1 << 64, "int"
        if not -(1 << 63) <= value < 1 << 63:
            _refuse(place, f"{quoted(text)} is beyond 64-bit integers", event)
    elif FLOAT.fullmatch(text):
        value, meaning = float(text), "float"
    if NOT_FINITE.fullmatch(text) or (isinstance(value, float) and math.isinf(value)):
        _refuse(place, f"{quoted(text)} is not a finite 64-bit number", event)
    if _meaning_in_1_1(event) != meaning:
        message = f"{quoted(text)} is not read alike by all YAML readers"
        hint = "quote it for text, or write true, false, or a plain number such as 1000 or 1.5"
        _refuse(place, message, event, hint)
    if value is None:
        _refuse(place, "has no value", event, "write one, or leave the key out")
    return value
