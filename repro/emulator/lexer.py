"""PTX text as tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import UnsupportedError

MAX_TEXT = 32 << 20  # bytes; the largest PTX of a wheel seen is a tenth of it

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.DOTALL | re.ASCII)
_SECTION = re.compile(r"^[ \t]*\.section[^{}]*\{[^}]*\}", re.MULTILINE)
_TOKEN = re.compile(
    r'"[^"\n]*"|[.%]?[\w$]+(?:(?:\.|::)[\w$]+)*|[-+@!|,;:<>=\[\](){}~]|\S', re.ASCII
)
_KNOWN = frozenset("-+@!|,;:<>=[](){}~")


class Token(NamedTuple):
    text: str
    line: int


def tokens(text: str) -> list[Token]:
    """All tokens of `text`, without comments and sections (debug data); ends with an empty one.

    UnsupportedError on characters that are no PTX, and on text longer than MAX_TEXT.
    """
    if len(text) > MAX_TEXT:
        raise UnsupportedError(f"PTX of {len(text)} characters, {MAX_TEXT} at most")
    text = _COMMENT.sub(_blank, text)
    text = _SECTION.sub(lambda match: "\n" * match[0].count("\n"), text)
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for match in _TOKEN.finditer(line):
            word = match[0]
            if len(word) == 1 and not (word.isalnum() or word in _KNOWN or word in "_$%."):
                raise UnsupportedError(f"character {word!r} is no PTX", where=f"PTX line {number}")
            found.append(Token(word, number))
    found.append(Token("", text.count("\n") + 1))
    return found


def _blank(match: re.Match[str]) -> str:
    word = match[0]
    if word[0] == '"':
        return word
    return "\n" * word.count("\n") or " "
