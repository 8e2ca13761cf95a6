"""Python values as logs print them: config dumps, `non-default args`, Namespaces.

A tolerant reader of what `repr` wrote: literals, calls with keywords (`SpeculativeConfig(…)`),
enum members (`<CUDAGraphMode.FULL: 2>`), anything else as bare text. Of a cut end it yields what
was whole.
One pass over the text, nesting bounded, never raises, nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..facts import Value
from .patterns import lazily

Node = "bool | int | float | str | None | list[Node] | dict[str, Node]"
DEPTH = 24
_STRING = lazily(r"[rbu]?(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")", re.DOTALL)
_NUMBER = lazily(r"-?\d{1,30}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,3})?(?![\w.])")
_ENUM = lazily(r"<(?:\w+\.)*(\w+)(?:: [^<>]{0,200})?>")
_NAME = lazily(r"[A-Za-z_][\w.]*")
_BARE = lazily(r"[^,\]})]+")
_SPACE = lazily(r"[\s,]*")
_WORDS: dict[str, bool | None] = {
    "True": True, "False": False, "None": None, "true": True, "false": False, "null": None,
}  # fmt: skip
_CLOSING = {"[": "]", "(": ")", "{": "}"}


@dataclass(slots=True)
class _Text:
    text: str
    at: int = 0

    def skip(self) -> str:
        """Pass over spaces and commas; the next character, "" at the end."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found and found.end() > self.at:
            self.at = found.end()
            return found
        return None


def keywords(text: str) -> dict[str, object]:
    """`a=1, b='x', c={…}` as a mapping; what cannot be read is left out."""
    return dict(_pairs(_Text(text), "", 0))


def value_of(text: str) -> object:
    """One value at the beginning of `text`: scalar, list or mapping by name."""
    return _value(_Text(text), 0)


def flat(values: Mapping[str, object]) -> Iterator[tuple[str, Value]]:
    """Scalars as they are, nested mappings under dotted names (two levels), lists as tuples."""
    for name, value in values.items():
        yield from _flat(name, value, 2)


def _flat(name: str, value: object, depth: int) -> Iterator[tuple[str, Value]]:
    if isinstance(value, dict):
        if depth:
            for inner, deeper in value.items():
                yield from _flat(f"{name}.{inner}", deeper, depth - 1)
    elif isinstance(value, list):
        scalars = [v for v in value[:64] if isinstance(v, bool | int | float | str)]
        yield name, tuple(scalars)
    elif value is None or isinstance(value, bool | int | float | str):
        yield name, value


def _pairs(text: _Text, closing: str, depth: int) -> Iterator[tuple[str, object]]:
    """Pairs up to the closing character: `key=value` and `'key': value` alike."""
    while (first := text.skip()) and first != closing:
        start = text.at
        key = _key(text)
        if key is not None and text.text[text.at : text.at + 1] in ("=", ":"):
            text.at += 1
            yield key, _value(text, depth)
        elif key is None or text.at == start:
            # no key: pass over one value, or one character that is none
            _value(text, depth)
            if text.at == start:
                text.at += 1
    text.at += 1


def _key(text: _Text) -> str | None:
    if found := text.take(_STRING):
        return found[1] if found[1] is not None else found[2]
    if found := text.take(_NAME) or text.take(_NUMBER):
        return found[0]
    return None


def _value(text: _Text, depth: int) -> object:
    while text.text[text.at : text.at + 1].isspace():
        text.at += 1
    first = text.text[text.at : text.at + 1]
    if found := text.take(_STRING):
        inner = found[1] if found[1] is not None else found[2]
        return inner.replace("\\'", "'").replace('\\"', '"')
    if found := text.take(_NUMBER):
        return _number(found[0])
    if found := text.take(_ENUM):
        return found[1]
    if first in _CLOSING:
        return _nested(text, first, depth)
    if (found := text.take(_NAME)) and found[0] in _WORDS:
        return _WORDS[found[0]]
    if found:
        if text.text[text.at : text.at + 1] == "(":
            return _nested(text, "(", depth)
        rest = text.take(_BARE)
        return (found[0] + (rest[0] if rest else "")).strip()
    bare = text.take(_BARE)
    return bare[0].strip() if bare else None


def _nested(text: _Text, opening: str, depth: int) -> object:
    text.at += 1
    if depth >= DEPTH:
        # deeper than any config: the rest of the text is not read
        text.at = len(text.text)
        return None
    closing = _CLOSING[opening]
    if opening == "{" or (opening == "(" and _is_call(text)):
        return dict(_pairs(text, closing, depth + 1))
    items: list[object] = []
    while (first := text.skip()) and first != closing:
        start = text.at
        items.append(_value(text, depth + 1))
        if text.at == start:
            text.at += 1
    text.at += 1
    return items


def _is_call(text: _Text) -> bool:
    found = _NAME.match(text.text, text.at)
    return found is not None and text.text[found.end() : found.end() + 1] == "="


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
