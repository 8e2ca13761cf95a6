"""PTX text as tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import UnsupportedError

MAX_GAP = 100  # characters between the name of a section and its brace
MAX_TEXT = 32 << 20  # bytes; the largest PTX of a wheel seen is a tenth of it

# Every alternative ends somewhere, so that no text is looked through twice.
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL | re.ASCII)
_SECTION = re.compile(r"^[ \t]*\.section[^{}\n]*", re.MULTILINE)
# `.reg.b16` is two words, `ld.global.b16` one.
_TOKEN = re.compile(
    r'"[^"\n]*"|\.[\w$]+(?:::[\w$]+)*|%?[\w$]+(?:(?:\.|::)[\w$]+)*|[-+@!|,;:<>=\[\](){}~]|\S',
    re.ASCII,
)
INLINE = ("// begin inline asm", "// end inline asm")
_KNOWN = frozenset("-+@!|,;:<>=[](){}~")


class Tokens(NamedTuple):
    """The words of a text, and the line of each."""

    words: list[str]
    lines: list[int]


def tokens(text: str) -> Tokens:
    """All tokens of `text`, without comments and sections (debug data); ends with an empty one.

    UnsupportedError on characters that are no PTX, and on text longer than MAX_TEXT.
    """
    if len(text) > MAX_TEXT:
        raise UnsupportedError(f"PTX of {len(text)} characters, {MAX_TEXT} at most")
    if INLINE[0] in text:
        text = _first_locations(text)
    text = _COMMENT.sub(_blank, text)
    text = _without_sections(text)
    words: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        found = _TOKEN.findall(line)
        words += found
        lines += [number] * len(found)
    odd = {word for word in set(words) if len(word) == 1 and not _is_known(word)}
    if odd:
        first = next(at for at, word in enumerate(words) if word in odd)
        raise UnsupportedError(
            f"character {words[first]!r} is no PTX", where=f"PTX line {lines[first]}"
        )
    words.append("")
    lines.append(text.count("\n") + 1)
    return Tokens(words, lines)


def _is_known(sign: str) -> bool:
    return sign.isalnum() or sign in _KNOWN or sign in "_$%."


def _first_locations(text: str) -> str:
    """`text` with one `.loc` in each piece of inline assembly.

    LLVM counts the lines of such a piece as lines of the source: from its second line on it names
    the statements below the one that it belongs to.
    """
    lines = text.split("\n")
    seen = None
    for number, line in enumerate(lines):
        word = line.strip()
        if word in INLINE:
            seen = 0 if word == INLINE[0] else None
        elif seen is not None and word.startswith(".loc"):
            lines[number] = "" if seen else line
            seen += 1
    return "\n".join(lines)


def _without_sections(text: str) -> str:
    """`text` with debug data blanked, line by line; it holds no nested braces."""
    kept, at = [], 0
    for match in _SECTION.finditer(text):
        if match.start() < at:
            continue
        start = text.find("{", match.end())
        end = text.find("}", start) + 1
        if start < 0 or end == 0:
            break
        if start - match.end() > MAX_GAP or text[match.end() : start].strip():
            continue  # no section: the parser refuses it
        kept += [text[at : match.start()], "\n" * text.count("\n", match.start(), end)]
        at = end
    return "".join([*kept, text[at:]])


def _blank(match: re.Match[str]) -> str:
    word = match[0]
    if word[0] == '"':
        return word
    return "\n" * word.count("\n") or " "
